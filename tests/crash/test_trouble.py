"""What fails for a while: the stream goes on or stalls, says so, claims nothing, and goes on by itself."""

import logging
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyspark.sql import SparkSession

import nosync as ns
from tests.crash.orders import feed, judge, orders_flow
from tests.crash.waiting import until
from tests.store.servers import BUCKET


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(file: Path) -> None:
    """Takes all the room that is left."""
    with file.open("wb", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while ballast.write(b"x" * size):
                    pass
            except OSError:
                continue


def test_a_full_disk_stalls_the_stream_until_there_is_room(quick: SparkSession, tmp_path: Path, small_disk: Path) -> None:
    home, folder = small_disk / "home", tmp_path / "in"
    feed(folder, [0])
    with orders_flow(quick, folder)[0].start(home, shards=2) as run:
        run.processAllAvailable()
        until(lambda: run.safe["host"] == 1)
        fill(small_disk / "ballast")
        feed(folder, [1, 2])
        until(lambda: run.status.message.startswith("Stalled"), instead=lambda: run.status)
        assert "No space left" in run.status.message and run.isActive
        assert run.epoch == 1 == run.safe["host"]
        assert ns.open(home).view("customers").num_rows > 0
        (small_disk / "ballast").unlink()
        run.processAllAvailable()
        until(lambda: run.safe["host"] == 3 and not run.status.problems, instead=lambda: run.status)
    judge(quick, home, folder, [1, 3])


def test_a_remote_that_is_away_stops_its_own_safe_point_alone(quick: SparkSession, tmp_path: Path, s3: Callable[[str], object]) -> None:
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/{BUCKET}", method="PUT")).close()
    s3(f"http://{host}:{port}")
    home, folder = tmp_path / "home", tmp_path / "in"
    feed(folder, [0])
    with orders_flow(quick, folder)[0].start(home, shards=2, remote=f"s3://{BUCKET}/{uuid4().hex}") as run:
        run.processAllAvailable()
        until(lambda: run.safe["site"] == 1, instead=lambda: run.status)
        server.stop()
        feed(folder, [1])
        run.processAllAvailable()
        until(lambda: run.safe["host"] == 2 and "records" in run.status.problems, instead=lambda: run.status)
        assert run.epoch == 2 and run.safe["site"] == 1
        server = ThreadedMotoServer(host, port, verbose=False)
        server.start()
        until(lambda: run.safe["site"] == 2 and not run.status.problems, instead=lambda: run.status)
    server.stop()
    judge(quick, home, folder)


def test_a_sink_whose_folder_is_lost_gets_every_epoch_once_it_is_back(quick: SparkSession, tmp_path: Path) -> None:
    home, folder, out, away = (tmp_path / name for name in ("home", "in", "out", "away"))
    feed(folder, [0])
    flow, views = orders_flow(quick, folder)
    flow.sink("out", views["customers"], ns.parquet(out))
    with flow.start(home, shards=2) as run:
        run.processAllAvailable()
        os.rename(out, away)
        out.write_text("in the way")
        feed(folder, [1, 2])
        until(lambda: run.safe["host"] == 3 and "sink out" in run.status.problems, instead=lambda: run.status)
        assert str(out) in run.status.problems["sink out"] and run.isActive
        out.unlink()
        shutil.move(away, out)
        run.processAllAvailable()
        assert not run.status.problems
    rows = [row for file in sorted(out.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    assert [row["_epoch"] for row in rows] == sorted(row["_epoch"] for row in rows) and {row["_epoch"] for row in rows} == {1, 2, 3}
    judge(quick, home, folder)
