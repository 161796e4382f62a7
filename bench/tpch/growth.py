"""How the time of an epoch grows with the state: as many changed rows over tables of several scales. No answers are compared."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

import nosync as ns
from bench.tpch.files import ChangeFiles, write
from bench.tpch.history import history
from bench.tpch.queries import queries
from bench.tpch.tables import Tables

QUERIES = ("q3", "q9", "q18")
AIM = 1.5
LINE = "{:>6} {:>9} {:>10} {:>10} {:>10} {:>8}"
FlowOf = Callable[[str, str, dict[str, ChangeFiles]], ns.Flow]


def growth(
    spark: SparkSession, scales: Sequence[float], names: Sequence[str], epochs: int, moving: float, folder: Path, flow_of: FlowOf
) -> None:
    """Prints a line by scale and query. `moving`: the share of the orders of the smallest scale that comes, and that goes, at each."""
    print(LINE.format("query", "scale", "rows/epoch", "first ms", "later ms", "growth"), flush=True)
    least = dict[str, float]()
    for scale in sorted(scales):
        place, part = folder / str(scale), min(scales) / scale
        lives = history(Tables(scale).all, epochs, moving * part, coming=part)
        changed = sum(life.added(2).num_rows + life.removed(2).num_rows for life in lives.values())
        sources = write(lives, epochs, place)
        for name in names:
            home = place / "homes" / name
            run = flow_of(name, queries(scale)[name], sources).start(home=home, shards=2, trigger={"availableNow": True}, quiet=True)
            run.awaitTermination()
            took = [progress["durationMs"]["triggerExecution"] for progress in run.recentProgress]
            later = statistics.median(took[1:])
            ratio = later / least.setdefault(name, later)
            print(LINE.format(name, f"{scale:g}", f"{changed:,}", f"{took[0]:,.0f}", f"{later:,.0f}", f"{ratio:.2f}x"), flush=True)
            shutil.rmtree(home)
        shutil.rmtree(place)
    print(f"aim: at most {AIM}x", flush=True)
