"""A worker of Spark's whose JVM has gone ends without a word; any other failure of its is told as ever."""

import socket
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyspark.daemon
import pytest
from pyspark.sql import SparkSession

from nosync.spark.quiet_daemon import quiet_daemon
from nosync.spark.worker import warm_up


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """PySpark's own, put back afterwards. Its signals stay those of the tests."""
    before = dict(vars(pyspark.daemon))
    monkeypatch.setattr(pyspark.daemon.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["daemon"])
    yield pyspark.daemon
    vars(pyspark.daemon).clear()
    vars(pyspark.daemon).update(before)


def ended(daemon: ModuleType, monkeypatch: pytest.MonkeyPatch, main: Any) -> int:
    """What a worker ends with whose other end is closed."""
    monkeypatch.setattr("pyspark.worker.main", main)
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        return int(daemon.worker(ours, True))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # PySpark leaves files open
def test_a_closed_pipe_is_no_news(daemon: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def writes(read: Any, write: Any) -> None:
        write.write(b"rows")

    assert ended(daemon, monkeypatch, writes) == 0
    assert "BrokenPipeError" in capfd.readouterr().err  # what PySpark says by itself
    quiet_daemon()
    assert ended(daemon, monkeypatch, writes) == 0
    assert capfd.readouterr().err == ""
    try:
        raise BrokenPipeError
    except BrokenPipeError:
        daemon.traceback.print_exc()
    assert capfd.readouterr().err == ""
    try:
        raise ValueError("of another kind")
    except ValueError:
        daemon.traceback.print_exc()
    assert "ValueError: of another kind" in capfd.readouterr().err


def test_workers_of_any_session_fall_silent(quick: SparkSession) -> None:
    def names(_: Any) -> Iterator[str]:
        warm_up()
        spec = sys.modules["__main__"].__spec__
        forked_from = sys.modules["__main__" if spec and spec.name == "pyspark.daemon" else "pyspark.daemon"]
        yield forked_from.print.__qualname__

    assert quick.sparkContext.parallelize([0], 1).mapPartitions(names).collect() == ["_unless_closed.<locals>.call"]
