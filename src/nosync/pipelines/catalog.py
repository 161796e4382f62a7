"""The tables of a pipeline in the session's catalog: made as `spark-pipelines` makes them, with links to the editions in their places."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.errors import JavaError, no_traces_logged, words_of
from nosync.bridge.tables import columns_of, location_of
from nosync.model.errors import Conflict, Invalid, Refused
from nosync.model.quoting import quoted
from nosync.pipelines.building import local
from nosync.pipelines.definitions import Dataset, Namespace
from nosync.pipelines.editions import CURRENT, Editions, point

SESSIONS_OWN, OURS = "spark_catalog", "_nosync"


def editions_of(spark: SparkSession, namespace: Namespace, pipeline: str) -> Editions:
    """Those of a pipeline, beside the tables of its database."""
    beside = local(location_of(spark, namespace.database, OURS))
    if beside is None:
        hint = "Let spark.sql.warehouse.dir, or its database, name a folder of this machine, or one that is mounted."
        raise Refused("the warehouse is in an object store, where tables cannot be replaced at once", hint=hint)
    return Editions(beside / pipeline)


@dataclass(frozen=True)
class Place:
    """Where a table of the catalog lies, or will lie."""

    spark: SparkSession
    dataset: Dataset
    name: str
    path: Path

    @staticmethod
    def of(spark: SparkSession, dataset: Dataset, namespace: Namespace) -> "Place":
        catalog, database, table = dataset.key
        if catalog != SESSIONS_OWN:
            hint = f"Leave `catalog` out: tables go to {SESSIONS_OWN}."
            raise Refused(f'table "{".".join(dataset.key)}" is in a catalog that tables cannot be put into as files', hint=hint)
        path = local(location_of(spark, database, table))
        if path is None:
            hint = "Let its database lie in a folder of this machine, or in one that is mounted."
            raise Refused(f'table "{table}" lies in an object store, where it cannot be replaced at once', hint=hint)
        return Place(spark, dataset, namespace.short(dataset.key), path)

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
        if self.spark.catalog.tableExists(self.quoted) and not self._fits(schema):
            self._drop()
        if not self.spark.catalog.tableExists(self.quoted):
            self._create(schema)
        else:
            self._alter()
        self._link(editions)
        if self.dataset.partition_by:
            self.spark.sql(f"MSCK REPAIR TABLE {self.quoted} SYNC PARTITIONS")
        self.spark.catalog.refreshTable(self.quoted)

    def _fits(self, schema: StructType) -> bool:
        """Whether the catalog has the same columns, partitions and format; nullability is nothing to a table of files."""
        both = self.spark.table(self.quoted).schema, schema
        there, wanted = ({field.name: field.dataType.simpleString() for field in one} for one in both)
        if there != wanted:
            return False
        partitions = [column.name for column in self.spark.catalog.listColumns(self.quoted) if column.isPartition]
        said = {row[0]: row[1] for row in self.spark.sql(f"DESCRIBE TABLE EXTENDED {self.quoted}").collect()}
        return set(partitions) == set(self.dataset.partition_by) and said.get("Provider", "").lower() == self.format

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

    def _alter(self) -> None:
        if self.dataset.comment is not None:
            self.spark.sql(f"COMMENT ON TABLE {self.quoted} IS {_text(self.dataset.comment)}")
        if self.dataset.properties:
            self.spark.sql(f"ALTER TABLE {self.quoted} SET TBLPROPERTIES ({self._properties()})")

    def _properties(self) -> str:
        return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in self.dataset.properties.items())

    def _link(self, editions: Editions) -> None:
        target = os.path.relpath(editions.folder / CURRENT / self.name, self.path.parent)
        if self.path.is_symlink() and os.readlink(self.path) == target:
            return
        if self.path.is_dir() and not self.path.is_symlink():
            aside = self.path.with_name(f".replaced-{self.path.name}.{os.getpid()}")
            self.path.rename(aside)
            point(self.path, target)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            point(self.path, target)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
