"""`python -m bench.latency`: how long rows wait until they are seen, and how many epochs that takes, while the load jumps by ten and back.

`--idle`: instead, what a flow costs that has nothing to do, and how soon it sees a new row.

One flow (count and sum by key) and one load, once for each trigger. The delay of an epoch is that of its oldest row, which bears the time
when it came.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType
from rich.console import Console
from rich.table import Table

import nosync as ns
from bench.latency.idle import compare
from bench.session import open_session

BYTES = 16


@dataclass
class Jumping:
    """Counts rows that come at `rate` a second, between two times at ten times that; a slice is a range of them."""

    rate: int
    jump: tuple[float, float]
    append_only: bool = True
    begun: float = 0.0
    next: int = 0
    allowed: int | None = None
    oldest: dict[int, float] = field(default_factory=dict)  # by the first row of a slice, when it came

    def declare(self, name: str, spark: SparkSession) -> StructType:
        return StructType().add("n", LongType())

    def start(self, folder: Path, taken: Any) -> None:
        self.begun = time.time()

    def come(self, seconds: float) -> int:
        """How many rows have come after so long."""
        first, last = self.jump
        return int(self.rate * (seconds + 9 * max(0.0, min(seconds, last) - first)))

    def came(self, row: int) -> float:
        """After how long a row came."""
        first, last = (self.come(at) for at in self.jump)
        if row <= first:
            return row / self.rate
        return self.jump[0] + (row - first) / (10 * self.rate) if row <= last else self.jump[1] + (row - last) / self.rate

    def available(self) -> dict[str, int] | None:
        upper = self.come(time.time() - self.begun)
        upper = upper if self.allowed is None else min(upper, self.next + self.allowed)
        if upper <= self.next:
            return None
        slice = {"lower": self.next, "upper": upper}
        self.next = upper
        return slice

    def read(self, spark: SparkSession, slice: dict[str, int]) -> DataFrame:
        return spark.range(slice["lower"], slice["upper"]).select(F.col("id").alias("n"), F.lit(1).cast("bigint").alias("_diff"))

    def rows(self, slice: dict[str, int]) -> int:
        return slice["upper"] - slice["lower"]

    def weight(self, slice: dict[str, int]) -> int:
        return BYTES * self.rows(slice)

    def allow(self, weight: int | None) -> None:
        self.allowed = None if weight is None else max(1, weight // BYTES)


def measured(spark: SparkSession, trigger: Any, rate: int, seconds: float) -> list[tuple[float, float]]:
    """Of each epoch, when it was seen and the delay of its oldest row. The jump takes the middle third."""
    source, found = Jumping(rate, (seconds / 3, 2 * seconds / 3)), list[tuple[float, float]]()
    flow = ns.Flow("latency", spark)
    rows = flow.source("rows", source)
    flow.view("sums", rows.groupBy((F.col("n") % 10_000).alias("k")).agg(F.count("*").alias("c"), F.sum("n").alias("s")))
    seen = 0

    def look(event: ns.Event) -> None:
        nonlocal seen
        if event.progress is not None:
            now = time.time() - source.begun
            found.append((now, now - source.came(seen)))
            seen += event.progress.numInputRows

    flow.listen(look)
    home = Path(tempfile.mkdtemp(prefix="latency-"))
    try:
        with flow.start(home, shards=2, trigger=trigger, quiet=True) as run:
            run.awaitTermination(seconds)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return found


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--rate", type=int, default=20_000, help="rows a second outside of the jump")
    parser.add_argument("--seconds", type=float, default=45.0, help="of each trigger; the first fifth does not count")
    parser.add_argument("--aim", default="1 second")
    parser.add_argument("--idle", action="store_true", help="measure a flow that has nothing to do, for 20 s by source")
    options = parser.parse_args(given)
    spark = open_session("nosync", "1g", Path(tempfile.mkdtemp(prefix="latency-spark-")))
    if options.idle:
        compare(spark, Path(tempfile.mkdtemp(prefix="latency-")), seconds=20.0, rows=30)
        spark.stop()
        return
    measured(spark, None, options.rate, 10.0)
    title = f"{options.rate:,} rows/s, ten times that in the middle third"
    table = Table("trigger", "epochs", "delay p50", "p95", "p99", "most", "most in the jump", title=title)
    for trigger in (None, {"latency": options.aim}, options.aim):
        epochs = [(at, delay) for at, delay in measured(spark, trigger, options.rate, options.seconds) if at > options.seconds / 5]
        delays = sorted(delay for _, delay in epochs)
        inside = [delay for at, delay in epochs if options.seconds / 3 <= at <= 2 * options.seconds / 3]
        parts = [delays[int(share * (len(delays) - 1))] for share in (0.5, 0.95, 0.99, 1.0)]
        table.add_row(str(trigger or "none"), str(len(epochs)), *(f"{1e3 * one:,.0f} ms" for one in (*parts, max(inside, default=0.0))))
    Console(width=140).print(table)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
