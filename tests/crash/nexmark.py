"""The queries of Nexmark in a process that is killed again and again: at every epoch what Spark answers in batch."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import nosync as ns
from bench.nexmark.events import Events
from bench.nexmark.files import TABLES, TAKEN, side, write
from bench.nexmark.queries import QUERIES
from nosync.journal.chain import read_chain
from nosync.journal.image import Image
from nosync.store.disk import LocalDisk
from nosync.testing import Batch, judge
from tests.crash.waiting import until

EVENTS, EPOCHS, SECONDS = 500, 4, 600
ROOT = Path(__file__).parent.parent.parent


def _image(place: Path) -> Image:
    return read_chain(LocalDisk(place / "home")).image()


def _run(place: Path, enough: Callable[[], bool], linger: float = 0.0) -> int | None:
    """Runs the flow in a process of its own until some seconds after that is enough, or to its end; gives the code with which it ended by
    itself.
    """
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "tests.crash.nexmark_driver", str(place)]
    with (place / "log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=place)
    try:
        until(lambda: process.poll() is not None or enough(), SECONDS, lambda: (place / "log").read_text()[-3000:])
        time.sleep(linger)
        return process.poll()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill_and_judge_nexmark(spark: SparkSession, place: Path, seed: int) -> int:
    """Kills the process once in every epoch, then lets it end, and compares all views at every epoch. Gives the number of kills."""
    chance = random.Random(seed)
    cuts = Events(EVENTS, seed=seed, micros=400_000).cut([*sorted(chance.sample(range(50, EVENTS), EPOCHS - 1)), EVENTS])
    write(cuts, place / "files")
    kills = 0
    for epoch in range(1, EPOCHS + 1):
        kills += _run(place, partial(_opened, place, epoch), 3 * chance.random()) is None
    assert _run(place, lambda: False) == 0, (place / "log").read_text()[-3000:]
    assert kills
    judge_nexmark(spark, place / "home", cuts)
    return kills


def judge_nexmark(spark: SparkSession, place: Path, cuts: Sequence[Mapping[str, pa.Table]]) -> None:
    """Compares every view with batch, epoch by epoch. Bids are stamped with the recorded time of the epoch that took them."""
    side(spark)
    home, opened = ns.open(place), read_chain(LocalDisk(place)).image().opened
    assert home.epoch == len(cuts)

    def batch_at(epoch: int) -> Batch:
        found = {name: pa.concat_tables(cut[name] for cut in cuts[:epoch]) for name in TABLES if name != "bid"}
        found["bid"] = pa.concat_tables(_stamped(cut["bid"], opened[number].at) for number, cut in enumerate(cuts[:epoch], start=1))
        versions = {name: table.num_rows for name, table in found.items()}  # tables grow, and nothing else
        batch = Batch(spark, {name: spark.createDataFrame(table) for name, table in found.items()}, versions)
        for name, query in QUERIES.items():
            batch.sql(f"create view {name} as {query}")
        return batch

    judge(home, batch_at)


def _opened(place: Path, epoch: int) -> bool:
    return (place / "home" / "journal").exists() and epoch in _image(place).opened


def _stamped(bids: pa.Table, at: float) -> pa.Table:
    micros = pa.array([round(at * 1e6)] * bids.num_rows, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return bids.append_column(TAKEN, micros)
