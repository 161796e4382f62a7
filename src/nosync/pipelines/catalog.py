"""The tables of a pipeline in the session's catalog: made as `spark-pipelines` makes them, with links to the editions in their places."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.errors import JavaError, no_traces_logged, words_of
from nosync.bridge.tables import Entry, columns_of, entry_of, forget_files, location_of, types_of
from nosync.model.errors import Conflict, Invalid, Refused
from nosync.model.quoting import quoted
from nosync.pipelines.definitions import Dataset, Namespace
from nosync.pipelines.editions import CURRENT, Editions
from nosync.pipelines.paths import local
from nosync.store.lasting import point

SESSIONS_OWN, OURS = "spark_catalog", "_nosync"


def editions_of(spark: SparkSession, namespace: Namespace, pipeline: str) -> Editions:
    """Those of a pipeline, beside the tables of its database."""
    beside = local(location_of(spark, namespace.database, OURS))
    if beside is None:
        hint = "Let spark.sql.warehouse.dir, or its database, name a folder of this machine, or one that is mounted."
        raise Refused("the warehouse is in an object store, where tables cannot be replaced at once", hint=hint)
    return Editions(beside / pipeline)


@dataclass(frozen=True)
class TableLocation:
    """Where a table of the catalog lies, or will lie."""

    spark: SparkSession
    dataset: Dataset
    name: str
    path: Path

    @staticmethod
    def of(spark: SparkSession, dataset: Dataset, namespace: Namespace) -> "TableLocation":
        catalog, database, table = dataset.key
        if catalog != SESSIONS_OWN:
            hint = f"Leave `catalog` out: tables go to {SESSIONS_OWN}."
            raise Refused(f'table "{".".join(dataset.key)}" is in a catalog that tables cannot be put into as files', hint=hint)
        path = local(location_of(spark, database, table))
        if path is None:
            hint = "Let its database lie in a folder of this machine, or in one that is mounted."
            raise Refused(f'table "{table}" lies in an object store, where it cannot be replaced at once', hint=hint)
        return TableLocation(spark, dataset, namespace.short(dataset.key), path)

    @property
    def quoted(self) -> str:
        return ".".join(map(quoted, self.dataset.key[1:]))

    @property
    def format(self) -> str:
        return (self.dataset.format or str(self.spark.conf.get("spark.sql.sources.default"))).lower()

    def check(self, replacing: bool) -> None:
        """Refuses the place of a table that somebody else has filled."""
        if not replacing and not self.path.is_symlink() and self.path.is_dir() and any(self.path.iterdir()):
            hint = f"Drop that table, or replace it by what this pipeline makes of all input: --full-refresh {self.name}."
            raise Conflict(f'"{self.path}" has a table that nosync did not write', hint=hint)

    def register(self, editions: Editions, schema: StructType) -> None:
        """The catalog has the table as it is defined, and finds the newest edition there."""
        with no_traces_logged():
            try:
                self._register(editions, schema)
            except (PySparkException, JavaError) as error:
                raise Invalid(f'table "{self.name}" ({self.dataset.where}): {words_of(error)}', hint="Correct its definition.") from None

    def _register(self, editions: Editions, schema: StructType) -> None:
        there = entry_of(self.spark, *self.dataset.key[1:])
        if there is not None and not self._fits(there, schema):
            self._drop()
            there = None
        if there is None:
            self._create(schema)
        else:
            self._alter(there)
        self._link(editions)
        if self.dataset.partition_by:
            self.spark.sql(f"MSCK REPAIR TABLE {self.quoted} SYNC PARTITIONS")
        forget_files(self.spark, *self.dataset.key[1:])

    def _fits(self, there: Entry, schema: StructType) -> bool:
        """Whether the catalog has the same columns, partitions and format."""
        said = there.columns, there.partition_by, there.format
        return said == (types_of(schema), self.dataset.partition_by, self.format)

    def _drop(self) -> None:
        """The entry alone: files of editions are behind a link, and the link goes first."""
        if self.path.is_symlink():
            self.path.unlink()
        self.spark.sql(f"DROP TABLE {self.quoted}")

    def _create(self, schema: StructType) -> None:
        """Managed, as `spark-pipelines` does it; where the catalog has forgotten a table that is there, at its place."""
        clauses = [f"CREATE TABLE {self.quoted} ({columns_of(self.spark, schema)}) USING {self.format}"]
        if self.dataset.partition_by:
            clauses.append(f"PARTITIONED BY ({', '.join(map(quoted, self.dataset.partition_by))})")
        if self.dataset.cluster_by:
            clauses.append(f"CLUSTER BY ({', '.join(map(quoted, self.dataset.cluster_by))})")
        if self.path.is_symlink():
            clauses.append(f"LOCATION {_text(str(self.path))}")
        if self.dataset.comment is not None:
            clauses.append(f"COMMENT {_text(self.dataset.comment)}")
        if self.dataset.properties:
            clauses.append(f"TBLPROPERTIES ({self._properties()})")
        self.spark.sql(" ".join(clauses))

    def _alter(self, there: Entry) -> None:
        if self.dataset.comment not in (None, there.comment):
            self.spark.sql(f"COMMENT ON TABLE {self.quoted} IS {_text(str(self.dataset.comment))}")
        if not self.dataset.properties.items() <= there.properties.items():
            self.spark.sql(f"ALTER TABLE {self.quoted} SET TBLPROPERTIES ({self._properties()})")

    def _properties(self) -> str:
        return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in self.dataset.properties.items())

    def _link(self, editions: Editions) -> None:
        target = os.path.relpath(editions.folder / CURRENT / self.name, self.path.parent)
        if self.path.is_symlink() and os.readlink(self.path) == target:
            return
        if self.path.is_dir() and not self.path.is_symlink():
            replaced = self.path.with_name(f".replaced-{self.path.name}.{os.getpid()}")
            self.path.rename(replaced)
            point(self.path, target)
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            point(self.path, target)


def create_view(spark: SparkSession, dataset: Dataset) -> None:
    """A view of the catalog (CREATE VIEW), over tables that are there by now."""
    said = [f"CREATE OR REPLACE VIEW {'.'.join(map(quoted, dataset.key[1:]))}"]
    said += [f"COMMENT {_text(dataset.comment)}"] if dataset.comment is not None else []
    if dataset.properties:
        said.append(f"TBLPROPERTIES ({', '.join(f'{_text(name)} = {_text(value)}' for name, value in dataset.properties.items())})")
    before = spark.catalog.currentDatabase()
    spark.catalog.setCurrentDatabase(dataset.key[1])
    with no_traces_logged():
        try:
            spark.sql(f"{' '.join(said)} AS {dataset.text}")
        except (PySparkException, JavaError) as error:
            raise Invalid(f'view "{dataset.key[-1]}" ({dataset.where}): {words_of(error)}', hint="Correct its query.") from None
        finally:
            spark.catalog.setCurrentDatabase(before)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
