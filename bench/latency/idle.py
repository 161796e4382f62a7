"""What a flow costs that has nothing to do, and how soon it sees that it has: CPU of the process with all that belongs to it, and the time
from a row's being there to the opening of its epoch.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import nosync as ns

REST_SECONDS = 3.0  # after an epoch, for what runs behind it
Give = Callable[[int], None]


@dataclass(frozen=True)
class Idle:
    """Share of a core, by process and thread, and how long each row waited for its epoch, in milliseconds."""

    share: float
    threads: list[tuple[str, float]]
    waits: list[float]


def memory(folder: Path) -> tuple[Any, Give]:
    source = ns.memory("n bigint")
    return source, lambda number: source.add([(number,)])


def files(count: int) -> Callable[[Path], tuple[Any, Give]]:
    """A folder in which so many files lie already."""

    def made(folder: Path) -> tuple[Any, Give]:
        folder.mkdir()

        def give(number: int) -> None:
            hidden = folder / f".{number}"
            hidden.write_text(f"{number}\n")
            hidden.rename(folder / f"{number}.csv")

        for number in range(-count, 0):
            give(number)
        return ns.files(folder, format="csv", schema="n bigint"), give

    return made


KINDS = {"ns.memory": memory, "a folder of 10 files": files(10), "a folder of 2,000 files": files(2000)}


def cpu_by_thread() -> Counter[str]:
    """Seconds of the process and of all below it, by thread."""
    found, this = Counter[str](), psutil.Process()
    ours = {thread.native_id: thread.name for thread in threading.enumerate()}
    for process in (this, *this.children(recursive=True)):
        for thread in process.threads():
            name = ours.get(thread.id) or Path(f"/proc/{process.pid}/task/{thread.id}/comm").read_text().strip()
            found[f"{process.name()}: {name}"] += thread.user_time + thread.system_time
    return found


def measured(spark: SparkSession, kind: str, folder: Path, seconds: float, rows: int) -> Idle:
    """A flow that has had some epochs, left alone for so long, and then given a row now and then."""
    source, give = KINDS[kind](folder / "in")
    flow, chance, waits = ns.Flow("idle", spark), Random(1), list[float]()
    taken = flow.source("rows", source)
    flow.view("sums", taken.groupBy((F.col("n") % 100).alias("k")).agg(F.count("*").alias("c")))
    with flow.start(folder / "home", shards=2, quiet=True) as run:
        for number in range(1, 6):
            give(number)
            run.processAllAvailable()
        time.sleep(REST_SECONDS)
        before, began = cpu_by_thread(), time.monotonic()
        time.sleep(seconds)
        used, took = cpu_by_thread() - before, time.monotonic() - began
        for number in range(10, 10 + rows):
            time.sleep(chance.uniform(0.3, 0.6))
            give(number)
            there = time.time()
            run.processAllAvailable()
            opened = run.lastProgress
            assert opened is not None
            waits.append(1e3 * (datetime.fromisoformat(opened["timestamp"]).timestamp() - there))
    return Idle(used.total() / took, [(name, spent / took) for name, spent in used.most_common(6)], waits)


def compare(spark: SparkSession, folder: Path, seconds: float, rows: int) -> None:
    """Prints a row for each kind of source."""
    table = Table("source", "CPU while idle", "seen after: median", "most", "most of it", title=f"idle for {seconds:g} s")
    for number, kind in enumerate(KINDS):
        place = folder / str(number)
        place.mkdir()
        found = measured(spark, kind, place, seconds, rows)
        most = ", ".join(f"{name} {share:.1%}" for name, share in found.threads)
        row = f"{found.share:.1%} of a core", f"{statistics.median(found.waits):.0f} ms", f"{max(found.waits):.0f} ms"
        table.add_row(kind, *row, most)
    Console(width=200).print(table)
