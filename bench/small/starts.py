"""What comes before the first epoch, and what many views take besides time.

`starts`: seconds of declaring, of `start()`, and from there to the first result, on a warm session, by the number of small views.
`memory`: PSS of the process and all below it after some epochs, each number of views in a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import nosync as ns
from bench.session import open_session
from bench.small.flows import KEYS, ROWS, SCHEMA, side_by_side

VIEWS = 1, 20, 30, 40
PSS_VIEWS = 1, 30
EPOCHS = 30
LINE = "{:>5} {:>10} {:>8} {:>12} {:>23} {:>7} {:>6}"
REST_SECONDS = 3.0  # until what runs behind the last epoch is done


def cpu_seconds() -> float:
    """Of this process and all below it."""
    this = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (this, *this.children(recursive=True)))


def rows_of(chance: random.Random) -> list[tuple[int, int, float]]:
    return [(chance.randrange(KEYS), chance.randrange(50), chance.random()) for _ in range(ROWS)]


def begun(spark: SparkSession, views: int) -> tuple[Any, Any, dict[str, float]]:
    """A flow of so many views that has had its first epoch: its source, its run, and how long each step took."""
    source, flow, home = ns.memory(SCHEMA), ns.Flow("starts", spark), Path(tempfile.mkdtemp(prefix="small"))
    times = [time.perf_counter()]
    side_by_side(views)(flow, flow.source("s", source))
    times.append(time.perf_counter())
    run = flow.start(home=home, shards=2, quiet=True)
    times.append(time.perf_counter())
    source.add(rows_of(random.Random(1)))
    run.processAllAvailable()
    times.append(time.perf_counter())
    names = "declaring", "start()", "first epoch"
    return source, run, {name: end - start for name, start, end in zip(names, times, times[1:])}


def starts(spark: SparkSession) -> None:
    """Prints a line for each number of views. The aims: 1.5 s from `start()` to the first epoch, 4 s in all. `CPU` is that of all
    processes, which others on the machine change less.
    """
    begun(spark, 1)[1].stop()  # what a session does once
    print("seconds until the first result, on a warm session", flush=True)
    print(LINE.format("views", "declaring", "start()", "first epoch", "start() to first epoch", "in all", "CPU"), flush=True)
    for views in VIEWS:
        before = cpu_seconds()
        _, run, took = begun(spark, views)
        spent = cpu_seconds() - before
        run.stop()
        found = *took.values(), took["start()"] + took["first epoch"], sum(took.values()), spent
        print(LINE.format(views, *(f"{seconds:.2f}" for seconds in found)), flush=True)


def memory() -> None:
    """Prints the PSS of each number of views, and how many times as much the most take. The aim: 1.5."""
    found = {views: _measured_apart(views) for views in PSS_VIEWS}
    table = Table(title=f"memory after {EPOCHS} epochs of {ROWS:,} rows, heap 1g, MiB")
    for name in ("views", "PSS", "Python", "JVM", "to one view"):
        table.add_column(name, justify="right")
    for views, sizes in found.items():
        ratio = sum(sizes.values()) / sum(found[PSS_VIEWS[0]].values())
        mib = [f"{size / 2**20:,.0f}" for size in (sum(sizes.values()), sizes["python"], sizes["java"])]
        table.add_row(str(views), *mib, f"{ratio:.2f}x")
    Console(width=150).print(table)


def _measured_apart(views: int) -> dict[str, int]:
    command = [sys.executable, "-m", "bench.small.starts", str(views)]
    answer = subprocess.run(command, env=dict(os.environ), stdout=subprocess.PIPE, check=True, text=True).stdout
    sizes: dict[str, int] = json.loads(answer.strip().splitlines()[-1])
    return sizes


def pss_by_kind() -> dict[str, int]:
    """Bytes of this process and all below it: pages that several share are counted once."""
    found, this = {"python": 0, "java": 0}, psutil.Process()
    for process in (this, *this.children(recursive=True)):
        found["java" if process.name() == "java" else "python"] += process.memory_full_info().pss
    return found


def main(views: int) -> None:
    """In a process of its own."""
    spark = open_session("nosync", "1g", Path(tempfile.mkdtemp(prefix="small")))
    source, run, _ = begun(spark, views)
    chance = random.Random(2)
    for _ in range(EPOCHS):
        source.add(rows_of(chance))
        run.processAllAvailable()
    time.sleep(REST_SECONDS)
    print(json.dumps(pss_by_kind()), flush=True)
    run.stop()
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
