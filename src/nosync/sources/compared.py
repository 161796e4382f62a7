"""A table that cannot say what has changed in it, such as one of a database: read whole at each look, and compared with the rows before.

A slice is `{"look": NUMBER, "rows": NUMBER}`. Below the source's own place in the home:

    HOME/input/SOURCE/LOOK/rows/       Parquet: the table at that look. The first stays; others until some later looks are recorded
    HOME/input/SOURCE/LOOK/changes/    Parquet: what came and went since the look before, with a count behind

The next look waits ten times as long as the last one took.
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.columns import column_named
from nosync.bridge.errors import JavaError
from nosync.bridge.streams import explained
from nosync.model.columns import DIFF
from nosync.model.errors import Conflict
from nosync.model.source import Slice, Taken

LOOK_SECONDS, REST = 1.0, 10
KEPT_LOOKS = 4


@dataclass(eq=False)
class ComparedTable:
    """`now` gives the rows as they are now."""

    title: str
    schema: StructType
    now: Callable[[], DataFrame]
    append_only: bool = False
    place: Path = field(default_factory=Path)
    look: int = 0
    next_at: float = 0.0

    def __repr__(self) -> str:
        return self.title

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.spark = spark
        self.schema = StructType([StructField(one.name, one.dataType) for one in self.schema.fields])
        arrow_schema(self.schema, f'source "{name}"')
        return self.schema

    def start(self, folder: Path, taken: Taken) -> None:
        latest = taken.latest
        self.place, self.look, self.next_at = folder, int(latest["look"]) if latest else 0, 0.0

    def available(self) -> Slice | None:
        begun = time.monotonic()
        if begun < self.next_at:
            return None
        try:
            rows = self._compare(self.look + 1)
        except JavaError as error:
            raise explained(self.title, error) from None
        finally:
            self.next_at = time.monotonic() + max(LOOK_SECONDS, REST * (time.monotonic() - begun))
        if not rows:
            shutil.rmtree(self._folder(self.look + 1))
            return None
        self.look += 1
        for old in range(2, self.look - KEPT_LOOKS + 1):
            shutil.rmtree(self._rows(old), ignore_errors=True)
        return {"look": self.look, "rows": rows}

    def _compare(self, look: int) -> int:
        """Writes down a look, and how many rows it brings."""
        shutil.rmtree(self._folder(look), ignore_errors=True)
        names = [column_named(name) for name in self.schema.names]
        self.now().select(*names).write.parquet(str(self._rows(look)))
        if look == 1:
            return int(ds.dataset(self._rows(look), format="parquet").count_rows())
        self._check(look - 1)
        come = self._read(self.spark, self._rows(look)).withColumn(DIFF, F.lit(1).cast("bigint"))
        gone = self._read(self.spark, self._rows(look - 1)).withColumn(DIFF, F.lit(-1).cast("bigint"))
        summed = come.unionAll(gone).groupBy(*names).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)
        summed.write.parquet(str(self._changes(look)))
        counts = ds.dataset(self._changes(look), format="parquet").to_table([DIFF]).column(DIFF)
        return int(pc.sum(pc.abs(counts)).as_py() or 0)

    def _check(self, look: int) -> None:
        if not self._rows(look).is_dir():
            hint = "Compute everything anew: nosync pipelines run --full-refresh-all."
            raise Conflict(f"the rows that {self.title} had were lost with the storage", hint=hint)

    def _folder(self, look: int) -> Path:
        return self.place / str(look)

    def _rows(self, look: int) -> Path:
        return self._folder(look) / "rows"

    def _changes(self, look: int) -> Path:
        return self._folder(look) / "changes"

    def _read(self, spark: SparkSession, folder: Path, more: tuple[StructField, ...] = ()) -> DataFrame:
        return spark.read.schema(StructType([*self.schema.fields, *more])).parquet(str(folder))

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        look = int(slice["look"])
        if look == 1:
            self._check(look)
            return self._read(spark, self._rows(look)).withColumn(DIFF, F.lit(1).cast("bigint"))
        found = self._read(spark, self._changes(look), (StructField(DIFF, LongType()),))
        each = F.explode(F.array_repeat(F.signum(DIFF).cast("bigint"), F.abs(DIFF).cast("int"))).alias(DIFF)
        return found.select(*(column_named(name) for name in self.schema.names), each)

    def rows(self, slice: Slice) -> int | None:
        return int(slice["rows"])
