"""A disk that refuses for a while, whoever runs the tests: the stream goes on as long as it safely can, says what stands still, heals."""

import errno
import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.store.disk import LocalDisk
from nosync.store.failures import from_disk
from tests.crash.orders import feed, judge, orders_flow
from tests.crash.waiting import until
from tests.ways import pinned


class Moody(LocalDisk):
    """A disk that answers some calls with an error of the system."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.no_writing: int | None = None
        self.no_syncing: int | None = None

    def create(self, name: str, content: bytes) -> None:
        self._ask(self.no_writing, name)
        super().create(name, content)

    def replace(self, name: str, content: bytes) -> None:
        self._ask(self.no_writing, name)
        super().replace(name, content)

    def sync_files(self, names: Iterable[str]) -> None:
        self._ask(self.no_syncing, "files")
        super().sync_files(names)

    def _ask(self, code: int | None, name: str) -> None:
        if code is not None:
            raise from_disk(OSError(code, os.strerror(code)), f'"{name}" was not written')


def test_permission_lost_and_a_full_disk_stop_what_they_must_and_heal(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "in"
    disk = Moody(home)
    monkeypatch.setattr("nosync.runtime.starting.LocalDisk", lambda root: disk)
    feed(folder, [0])
    with orders_flow(quick, folder)[0].start(home, shards=2) as run:
        run.processAllAvailable()
        until(lambda: run.safe["host"] == 1, instead=lambda: run.status)

        disk.no_syncing = errno.EIO  # nothing new becomes safe; the stream has no need of that
        feed(folder, [1])
        run.processAllAvailable()
        until(lambda: "host" in run.status.problems, instead=lambda: run.status)
        assert os.strerror(errno.EIO) in run.status.problems["host"]
        assert (run.epoch, run.safe) == (2, {"process": 2, "host": 1})

        disk.no_syncing = None
        until(lambda: run.safe["host"] == 2 and not run.status.problems, instead=lambda: run.status)

        for number, code in enumerate((errno.EACCES, errno.ENOSPC), start=2):
            disk.no_writing = code  # without its record an epoch is none
            feed(folder, [number])
            until(lambda: run.status.message.startswith("Stalled"), instead=lambda: run.status)
            assert os.strerror(code) in run.status.message and run.isActive
            assert run.epoch == run.safe["host"] == number
            assert ns.open(home).view("customers").num_rows > 0
            disk.no_writing = None
            run.processAllAvailable()
            until(lambda at=number: run.safe["host"] == at + 1 and not run.status.problems, instead=lambda: run.status)
    judge(quick, home, folder, [1, 4])


def limit_files(most: int) -> None:
    """What Spark's Python workers may write into one file."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that has just ended
            if "pyspark.worker" in " ".join(process.cmdline()):
                process.rlimit(psutil.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def test_a_task_that_cannot_write_its_layer_stalls_the_stream_until_it_can(quick: SparkSession, tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "in"
    feed(folder, [0])
    with pinned(quick, "wide"), orders_flow(quick, folder)[0].start(home, shards=2) as run:  # narrow epochs are written by the driver
        run.processAllAvailable()
        try:
            limit_files(100)
            feed(folder, [1])
            until(lambda: run.status.message.startswith("Stalled"), instead=lambda: run.status)
            assert "epoch 2 could not be written" in run.status.message and "too large" in run.status.message
            assert run.isActive and run.epoch == 1
        finally:
            limit_files(resource.RLIM_INFINITY)
        run.processAllAvailable()
        assert run.epoch == 2
        assert not [file for file in (home / "layers").rglob(".*") if file.is_file()]  # nothing half-written
    judge(quick, home, folder, [1, 2])
