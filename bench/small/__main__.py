"""`python -m bench.small`: milliseconds of an epoch of 1,000 rows, warm, beside Spark's micro-batch where it has the query.

`--start`: instead, seconds until the first result, by the number of views. `--memory`: PSS of thirty views and of one.
Epochs of ours and of Spark's alternate, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import nosync as ns
from bench.session import open_session
from bench.small.flows import CASES, KEYS, ROWS, SCHEMA, Case
from bench.small.starts import memory, starts

Epoch = Callable[[list[tuple[int, int, float]]], float]


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """What the caller asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.small", description=__doc__)
    parser.add_argument("--epochs", type=int, default=60, help="measured epochs of each flow")
    parser.add_argument("--warm", type=int, default=25, help="epochs before those")
    parser.add_argument("--only", action="append", metavar="TEXT", help="cases that contain this; may be repeated")
    parser.add_argument("--way", default="", help="pin the way that epochs take: narrow or wide")
    parser.add_argument("--alone", action="store_true", help="without Spark's streaming beside")
    parser.add_argument("--parts", action="store_true", help="print the parts of an epoch too")
    parser.add_argument("--start", action="store_true", help="measure declaring, start() and the first epoch of 1, 20, 30 and 40 views")
    parser.add_argument("--memory", action="store_true", help="measure the memory of 30 views and of one")
    return parser.parse_args(given)


class Ours:
    """One flow over a source in memory."""

    def __init__(self, spark: SparkSession, case: Case, home: Path) -> None:
        self.source = ns.memory(SCHEMA)
        flow = ns.Flow("small", spark=spark)
        case.declare(flow, flow.source("s", self.source))
        self.run = flow.start(home=home, shards=2)

    def epoch(self, rows: list[tuple[int, int, float]]) -> float:
        started = time.perf_counter()
        self.source.add(rows)
        self.run.processAllAvailable()
        return (time.perf_counter() - started) * 1e3

    def parts(self, last: int) -> dict[str, float]:
        found = [progress["durationMs"] for progress in self.run.recentProgress[-last:]]
        return {name: statistics.median(parts[name] for parts in found) for name in found[-1]}


class Sparks:
    """The same query by Structured Streaming over a folder of files."""

    def __init__(self, spark: SparkSession, case: Case, folder: Path) -> None:
        assert case.stream is not None
        self.folder, self.number = folder / "in", 0
        self.folder.mkdir(parents=True)
        query = case.stream(spark.readStream.schema(SCHEMA).parquet(str(self.folder)))
        writer = query.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(folder / "state"))
        self.running = writer.start()

    def epoch(self, rows: list[tuple[int, int, float]]) -> float:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(values, type) for values, type in zip(columns, (pa.int64(), pa.int32(), pa.float64()), strict=True)]
        started = time.perf_counter()
        self.number += 1
        hidden = self.folder / f".{self.number}.parquet"
        pq.write_table(pa.table(arrays, names=["k", "g", "x"]), hidden)
        hidden.rename(self.folder / f"{self.number}.parquet")
        self.running.processAllAvailable()
        return (time.perf_counter() - started) * 1e3


def measure(spark: SparkSession, case: Case, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    chance = random.Random(1)
    ours = Ours(spark, case, folder / "home")
    sparks = Sparks(spark, case, folder / "spark") if case.stream is not None and not asked.alone else None
    took: dict[str, list[float]] = {"ours": [], "spark": []}
    for _ in range(asked.warm + asked.epochs):
        rows = [(chance.randrange(KEYS), chance.randrange(50), chance.random()) for _ in range(ROWS)]
        took["ours"].append(ours.epoch(rows))
        if sparks is not None:
            took["spark"].append(sparks.epoch(rows))
    parts = ours.parts(asked.epochs)
    ours.run.stop()
    if sparks is not None:
        sparks.running.stop()
    return {name: sorted(values[asked.warm :]) for name, values in took.items()} | {"parts": parts}


def main(given: Sequence[str]) -> int:
    """Measures and prints."""
    asked = arguments(given)
    console = Console(width=150)
    if asked.memory:
        memory()
        return 0
    spark = open_session("nosync", "2g", Path(tempfile.mkdtemp(prefix="small")))
    if asked.start:
        starts(spark)
        spark.stop()
        return 0
    if asked.way:
        spark.conf.set("spark.nosync.way", asked.way)
    table = Table(title=f"{ROWS:,} rows an epoch: from adding them to the recorded epoch, median of {asked.epochs}, milliseconds")
    for name in ("", "before", "aim", "now", "p95", "Spark's micro-batch"):
        table.add_column(name, justify="left" if not name else "right")
    for name, case in CASES.items():
        if asked.only and not any(text in name for text in asked.only):
            continue
        folder = Path(tempfile.mkdtemp(prefix="small"))
        found = measure(spark, case, asked, folder)
        shutil.rmtree(folder, ignore_errors=True)
        ours, theirs = found["ours"], found["spark"]
        row = [f"{case.before:,.0f}", f"{case.aim:,.0f}", f"{statistics.median(ours):,.0f}", f"{ours[int(len(ours) * 0.95)]:,.0f}"]
        table.add_row(name, *row, f"{statistics.median(theirs):,.0f}" if theirs else "-")
        if asked.parts:
            console.print(name, found["parts"])
    console.print(table)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
