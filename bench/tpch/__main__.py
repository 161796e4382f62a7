"""`python -m bench.tpch --scale 0.01`: each query as a flow over tables that grow and shrink, compared with Spark's batch answer.

Prints for each query: rows of the view, milliseconds of the first epoch, of the median later one and of the median batch run, how many
times as long as the epoch the batch run took, and whether all compared epochs were equal; at the end the median and the worst of these
ratios. Ends with 1 if one epoch was not equal. `--growth`: instead, what the same change takes at several scales.
"""

import argparse
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import nosync as ns
from bench.session import open_session
from bench.tpch.files import ChangeFiles, tables, write
from bench.tpch.growth import QUERIES, growth
from bench.tpch.history import Life, history
from bench.tpch.queries import queries
from bench.tpch.tables import Tables
from nosync.testing import Batch, difference

LINE = "{:>5} {:>8} {:>10} {:>10} {:>10} {:>7}  {}"


@dataclass(frozen=True, slots=True)
class World:
    """What all queries share."""

    spark: SparkSession
    sources: Mapping[str, ChangeFiles]
    lives: Mapping[str, Life]
    folder: Path
    compared: tuple[int, ...]  # epochs


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.tpch", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--moving", type=float, default=0.01, help="share of the orders that comes, and that goes, in each later epoch")
    parser.add_argument("--compare", type=int, default=3, metavar="N", help="so many epochs, the last among them; 0: every one")
    parser.add_argument("--only", action="append", metavar="QUERY", help="q1 to q22; may be repeated")
    parser.add_argument("--focus", type=float, default=0.0, help="share of rows that have what the queries ask for")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heap", default="2g")
    parser.add_argument("--growth", action="store_true", help="the same change over tables of several scales, for q3, q9 and q18 or --only")
    parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 1.0], help="for --growth")
    return parser.parse_args()


def compared(epochs: int, count: int) -> tuple[int, ...]:
    """Which epochs are compared: spread evenly, the first and the last among them."""
    if count <= 0 or count >= epochs:
        return tuple(range(1, epochs + 1))
    return tuple(sorted({1 + round(place * (epochs - 1) / max(count - 1, 1)) for place in range(count)} | {epochs}))


def flow_of(spark: SparkSession, name: str, text: str, sources: Mapping[str, ChangeFiles]) -> ns.Flow:
    """The query as a flow over the tables it names."""
    flow = ns.Flow(name, spark)
    for table, source in sources.items():
        if re.search(rf"\b{table}\b", text):
            flow.source(table, source, checked=False)
    flow.sql(f"create view {name} as {text}")
    return flow


def measure(world: World, name: str, text: str) -> float | None:
    """Runs one query both ways and prints its line; gives the ratio, or None where an answer was wrong."""
    home = world.folder / "homes" / name
    try:
        run = flow_of(world.spark, name, text, world.sources).start(home=home, shards=2, trigger={"availableNow": True})
        run.awaitTermination()
        epochs = [progress["durationMs"]["triggerExecution"] for progress in run.recentProgress]
        run.stop()
    except ns.NosyncError as error:
        print(LINE.format(name, "", "", "", "", "", f"{type(error).__name__}: {error}".splitlines()[0]), flush=True)
        return None
    wrong, batch_millis, rows = "", [], 0
    for epoch in world.compared:
        batch = Batch(world.spark, tables(world.spark, world.lives, epoch, world.folder))
        started = time.perf_counter()
        answer = batch.sql(text).toArrow()
        batch_millis.append((time.perf_counter() - started) * 1e3)
        view = ns.open(home).view(name, at=epoch)
        rows, found = view.num_rows, difference(answer, view)
        wrong = wrong or (f"epoch {epoch}: {found}" if found else "")
    shutil.rmtree(home)
    later, whole = statistics.median(epochs[1:] or epochs), statistics.median(batch_millis)
    said = wrong or f"equal at epochs {', '.join(map(str, world.compared))}"
    print(LINE.format(name, rows, f"{epochs[0]:,.0f}", f"{later:,.0f}", f"{whole:,.0f}", f"{whole / later:.1f}x", said), flush=True)
    return None if wrong else whole / later


def summary(ratios: Mapping[str, float | None]) -> str:
    """How the queries did together."""
    right = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    said = f"{len(right)} of {len(ratios)} queries equal to batch"
    if not right:
        return said
    worst = min(right, key=lambda name: right[name])
    return f"{said}; batch took {statistics.median(right.values()):.1f}x as long in the median, {right[worst]:.1f}x at worst ({worst})"


def main() -> int:
    asked = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        spark = open_session("nosync", asked.heap, folder / "spark")
        if asked.growth:
            growth(spark, asked.scales, asked.only or QUERIES, asked.epochs, asked.moving, folder, partial(flow_of, spark))
            spark.stop()
            return 0
        lives = history(Tables(asked.scale, asked.seed, asked.focus).all, asked.epochs, asked.moving, asked.seed)
        lines = lives["lineitem"].alive(1).num_rows
        print(f"scale {asked.scale}, {lines:,} lines at first; then {asked.moving:.0%} of the orders come and as many go", flush=True)
        world = World(spark, write(lives, asked.epochs, folder), lives, folder, compared(asked.epochs, asked.compare))
        print(LINE.format("query", "rows", "first ms", "later ms", "batch ms", "ratio", ""), flush=True)
        texts = queries(asked.scale)
        ratios = {name: measure(world, name, texts[name]) for name in asked.only or texts}
        print(summary(ratios), flush=True)
        spark.stop()
    return 1 if None in ratios.values() else 0


if __name__ == "__main__":
    sys.exit(main())
