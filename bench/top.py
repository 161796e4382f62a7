"""The first rows of one large group: the same small change over states of different sizes.

    python -m bench.top [ROWS ...]

Promise to keep: an epoch of a thousand rows costs about the same whether the group holds a hundred thousand rows or ten million.
"""

import statistics
import sys
import tempfile
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
DELTA, EPOCHS, TOP = 1_000, 12, 10
FILE = 1_000_000


def milliseconds(spark: SparkSession, rows: int, folder: Path, epochs: int = EPOCHS) -> float:
    """The median time of an epoch of `DELTA` rows, of which a few reach the first `TOP` among `rows`."""
    incoming = folder / "in"
    _write(incoming, rows, epochs)
    flow = ns.Flow("top", spark)
    source = ns.files(incoming, schema="id bigint, value double", maxFilesPerTrigger=1)
    flow.view("first", flow.source("s", source).orderBy(F.desc("value"), "id").limit(TOP))
    stepping = Stepping(flow.program(), folder / "home", 2)
    times = []
    try:
        while (progress := stepping.step()) is not None:
            times.append(progress["durationMs"]["triggerExecution"])
    finally:
        stepping.close()
    return float(statistics.median(times[-epochs + 2 :]))


def _write(folder: Path, rows: int, epochs: int) -> None:
    """The state in files of a million rows, then one small file an epoch."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(rows)
    whole = [min(FILE, rows - start) for start in range(0, rows, FILE)]
    for number, count in enumerate([*whole, *[DELTA] * epochs]):
        values = chance.random(count) + (0.001 * (number - len(whole)) if count == DELTA else 0)
        ids = np.arange(count) + number * FILE
        pq.write_table(pa.table({"id": ids, "value": values}), folder / f"{number:05}.parquet")


def main(sizes: list[int]) -> None:
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        spark = open_session("nosync", "2g", Path(scratch) / "spark")
        for rows in sizes:
            found[rows] = milliseconds(spark, rows, Path(scratch) / str(rows))
            print(f"{rows:>12,} rows in one group: {found[rows]:.0f} ms an epoch of {DELTA:,} rows", flush=True)
    print(f"ratio of the largest to the smallest: {found[sizes[-1]] / found[sizes[0]]:.2f}")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
