"""The first rows of one large group: the same small changes over states of different sizes, epoch by epoch in turn.

    python -m bench.top [ROWS ...]

Promise to keep: an epoch of a thousand rows costs about the same whether the group holds a hundred thousand rows or ten million.
"""

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from bench.session import open_session
from nosync.runtime.stepping import Stepping

SIZES = (100_000, 1_000_000, 10_000_000)
DELTA, EPOCHS, WARM, TOP = 1_000, 20, 4, 10
FILE = 1_000_000


def milliseconds(spark: SparkSession, folder: Path, sizes: Sequence[int] = SIZES, epochs: int = EPOCHS) -> dict[int, float]:
    """The median time of an epoch of `DELTA` rows, of which a few reach the first `TOP`, by the number of rows in the group."""
    started = {rows: _started(spark, rows, folder / str(rows), epochs) for rows in sizes}
    times: dict[int, list[float]] = {rows: [] for rows in sizes}
    try:
        for _ in range(epochs):
            for rows, stepping in started.items():
                progress = stepping.step()
                assert progress is not None
                times[rows].append(progress["durationMs"]["triggerExecution"])
    finally:
        for stepping in started.values():
            stepping.close()
    return {rows: float(statistics.median(found[WARM:])) for rows, found in times.items()}


def _started(spark: SparkSession, rows: int, folder: Path, epochs: int) -> Stepping:
    """A flow that has all but the small files in its state."""
    files = _write(folder / "in", rows, epochs)
    flow = ns.Flow(f"top-{rows}", spark)
    source = ns.files(folder / "in", schema="id bigint, value double", maxFilesPerTrigger=1)
    flow.view("first", flow.source("s", source).orderBy(F.desc("value"), "id").limit(TOP))
    stepping = Stepping(flow.program(), folder / "home", 2)
    for _ in range(files):
        stepping.step()
    return stepping


def _write(folder: Path, rows: int, epochs: int) -> int:
    """The state in files of a million rows, then one small file an epoch, each a little above the last. How many files the state has."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(rows)
    whole = [min(FILE, rows - start) for start in range(0, rows, FILE)]
    for number, count in enumerate([*whole, *[DELTA] * epochs]):
        values = chance.random(count) + 0.001 * max(0, number - len(whole) + 1)
        ids = np.arange(count) + number * FILE
        pq.write_table(pa.table({"id": ids, "value": values}), folder / f"{number:05}.parquet")
    return len(whole)


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        found = milliseconds(open_session("nosync", "2g", Path(scratch) / "spark"), Path(scratch), sizes)
    for rows, median in found.items():
        print(f"{rows:>12,} rows in one group: {median:.0f} ms an epoch of {DELTA:,} rows")
    print(f"ratio of the largest to the smallest: {found[sizes[-1]] / found[sizes[0]]:.2f}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
