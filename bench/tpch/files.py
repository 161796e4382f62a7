"""The history of the tables as Parquet: what each epoch brings and takes, with `_diff`, and for batch what is there after it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from bench.tpch.history import Life
from nosync.model.source import Slice


@dataclass(eq=False)
class ChangeFiles:
    """A source of one file an epoch, each row with its diff. Every table has a file for every epoch, if only an empty one."""

    kept_in: Path
    schema: pa.Schema
    epochs: int
    append_only: bool
    trims: bool = False
    taken: int = 0

    def declare(self, name: str, spark: SparkSession) -> StructType:
        return from_arrow_schema(self.schema)

    def start(self, folder: Path, taken: Iterable[Slice]) -> None:
        self.taken = max((slice["epoch"] for slice in taken), default=0)

    def available(self) -> Slice | None:
        if self.taken == self.epochs:
            return None
        self.taken += 1
        return {"epoch": self.taken}

    def _file(self, slice: Slice) -> Path:
        return self.kept_in / f"{slice['epoch']}.parquet"

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        return spark.read.parquet(str(self._file(slice)))

    def table(self, slice: Slice) -> pa.Table:
        return pq.read_table(self._file(slice))

    def rows(self, slice: Slice) -> int | None:
        return int(pq.read_metadata(self._file(slice)).num_rows)

    def weight(self, slice: Slice) -> int:
        return self._file(slice).stat().st_size

    def trim(self, slice: Slice) -> None:
        """The files stay."""


def write(lives: Mapping[str, Life], epochs: int, folder: Path) -> dict[str, ChangeFiles]:
    """Writes all changes; returns a source for each table."""
    for name, life in lives.items():
        (folder / "changes" / name).mkdir(parents=True, exist_ok=True)
        for epoch in range(1, epochs + 1):
            both = [_with_diff(life.added(epoch), 1), _with_diff(life.removed(epoch), -1)]
            pq.write_table(pa.concat_tables(both), folder / "changes" / name / f"{epoch}.parquet")
    return {
        name: ChangeFiles(folder / "changes" / name, life.table.schema, epochs, append_only=bool((life.gone > epochs).all()))
        for name, life in lives.items()
    }


def _with_diff(table: pa.Table, diff: int) -> pa.Table:
    return table.append_column("_diff", pa.array([diff] * table.num_rows, pa.int64()))


def tables(spark: SparkSession, lives: Mapping[str, Life], epoch: int, folder: Path) -> dict[str, DataFrame]:
    """The tables as they are after an epoch, as files of their own: what batch has to read."""
    found = {}
    for name, life in lives.items():
        path = folder / "alive" / str(epoch) / f"{name}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(life.alive(epoch), path)
        found[name] = spark.read.parquet(str(path))
    return found
