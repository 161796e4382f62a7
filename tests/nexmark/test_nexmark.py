"""The queries of Nexmark: at every epoch what Spark answers in batch, wherever the stream is cut, and after a crash."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from bench.nexmark.events import Events
from bench.nexmark.files import TABLES, TAKEN, side, write
from bench.nexmark.queries import QUERIES
from nosync.journal.chain import read_chain
from nosync.journal.image import Image
from nosync.store.disk import LocalDisk
from nosync.testing import Batch, difference
from tests.crash.waiting import until

EVENTS, EPOCHS, SECONDS = 500, 3, 600
ROOT = Path(__file__).parent.parent.parent


def _image(place: Path) -> Image:
    return read_chain(LocalDisk(place / "home")).image()


def _run(place: Path, enough: Callable[[], bool]) -> int | None:
    """Runs the flow in a process of its own until that is enough, or to its end; gives the code with which it ended by itself."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "tests.nexmark.driver", str(place)]
    with (place / "log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd=place)
    try:
        until(lambda: process.poll() is not None or enough(), SECONDS, lambda: (place / "log").read_text()[-3000:])
        return process.poll()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _in_the_second_epoch(place: Path) -> bool:
    if not (place / "home" / "journal").exists() or 2 not in (image := _image(place)).opened or image.epoch < 1:
        return False
    time.sleep(1.0)
    return True


@pytest.mark.timeout(900)
def test_the_queries_of_nexmark_equal_batch_at_every_epoch_and_after_a_crash(quick: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    cuts = Events(EVENTS, seed=3, micros=400_000).cut([*sorted(chance.sample(range(50, EVENTS), EPOCHS - 1)), EVENTS])
    write(cuts, tmp_path / "files")
    assert _run(tmp_path, lambda: _in_the_second_epoch(tmp_path)) is None, "not killed"
    assert _image(tmp_path).epoch < EPOCHS
    assert _run(tmp_path, lambda: False) == 0, (tmp_path / "log").read_text()[-3000:]
    side(quick)
    home, opened = ns.open(tmp_path / "home"), _image(tmp_path).opened
    assert home.epoch == EPOCHS
    for epoch in range(1, EPOCHS + 1):
        tables = {name: quick.createDataFrame(pa.concat_tables(cut[name] for cut in cuts[:epoch])) for name in TABLES if name != "bid"}
        bids = [_stamped(cut["bid"], opened[number].at) for number, cut in enumerate(cuts[:epoch], start=1)]
        tables["bid"] = quick.createDataFrame(pa.concat_tables(bids))
        batch = Batch(quick, tables)
        for name, query in QUERIES.items():
            batch.sql(f"create view {name} as {query}")
            found = difference(batch.answer(name), home.view(name, at=epoch))
            assert not found, f"{name} at epoch {epoch}: {found}"
    assert not [name for name in home.views if name in QUERIES and not home.view(name).num_rows], "nothing to find"


def _stamped(bids: pa.Table, at: float) -> pa.Table:
    micros = pa.array([round(at * 1e6)] * bids.num_rows, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return bids.append_column(TAKEN, micros)
