"""A source that counts: rows (timestamp, value) at a steady rate, for trying things out."""

import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType, TimestampType

from nosync.model.absent import connector
from nosync.model.arguments import checked
from nosync.model.columns import DIFF
from nosync.model.errors import Invalid
from nosync.model.source import Slice, Taken, rows_within

BYTES = 16  # of a row


@checked(numPartitions="Leave it out: Spark spreads the rows.")
def rate(rowsPerSecond: int = 1) -> "Rate":  # noqa: N803 (Spark's name)
    """Rows `timestamp timestamp, value bigint`, as Spark's own rate source; it goes on where it stopped.

    >>> ticks = flow.source("ticks", ns.rate(rowsPerSecond=10))
    """
    if rowsPerSecond < 1:
        raise Invalid(f"rowsPerSecond={rowsPerSecond} makes no rows", hint="Pass 1 or more.")
    return Rate(rowsPerSecond)


@connector("source", "rate")
@dataclass(eq=False)
class Rate:
    """See `rate`. A slice is a range of values and the time of value 0."""

    rows_per_second: int
    append_only: bool = True
    begun: float = 0.0
    next: int = 0
    allowed: int | None = None

    def __repr__(self) -> str:
        return f"ns.rate(rowsPerSecond={self.rows_per_second})"

    def declare(self, name: str, spark: SparkSession) -> StructType:
        return StructType().add("timestamp", TimestampType()).add("value", LongType())

    def start(self, folder: Path, taken: Taken) -> None:
        self.next = taken.latest["upper"] if taken.latest is not None else 0
        self.begun = time.time() - self.next / self.rows_per_second

    def available(self) -> Slice | None:
        upper = int((time.time() - self.begun) * self.rows_per_second)
        upper = upper if self.allowed is None else min(upper, self.next + self.allowed)
        if upper <= self.next:
            return None
        slice = {"lower": self.next, "upper": upper, "begun": round(self.begun * 1e6), "rate": self.rows_per_second}
        self.next = upper
        return slice

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        micros = F.lit(slice["begun"]) + F.floor(F.col("id") * F.lit(1_000_000) / F.lit(slice["rate"]))
        rows = spark.range(slice["lower"], slice["upper"])
        return rows.select(
            F.timestamp_micros(micros.cast("bigint")).alias("timestamp"), F.col("id").alias("value"), F.lit(1).cast("bigint").alias(DIFF)
        )

    def rows(self, slice: Slice) -> int:
        return int(slice["upper"] - slice["lower"])

    def weight(self, slice: Slice) -> int:
        return BYTES * self.rows(slice)

    def allow(self, weight: int | None) -> None:
        self.allowed = rows_within(weight, BYTES)
