"""A run is there once it is fenced and declared; it recovers behind, for all to see, and whoever needs the state waits."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.names import RUNS, newest_generation
from nosync.model.status import Recovery
from nosync.runtime import starting
from nosync.store.disk import LocalDisk
from tests.crash.waiting import until

HALF = Recovery("fetching", 3, 12, int(1.2 * 2**30), 4 * 2**30)


class Gate:
    """A recovery that reports, and goes on when it is let."""

    def __init__(self, recover: Callable[..., Any]) -> None:
        self.recover, self.open, self.failing = recover, threading.Event(), False

    def __call__(self, *arguments: Any) -> Any:
        arguments[-1](HALF)
        self.open.wait(60)
        arguments[-1](HALF)
        if self.failing:
            raise ns.Corrupt("layers are missing on every tier")
        return self.recover(*arguments)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(starting.recover)
    monkeypatch.setattr(starting, "recover", gate)
    yield gate
    gate.open.set()


def started(session: SparkSession, home: Path) -> tuple[ns.Run, Any]:
    flow, source = ns.Flow("shop", session), ns.memory("x long")
    flow.view("v", flow.source("s", source))
    return flow.start(home, shards=1), source


def test_start_returns_while_recovery_goes_on_and_status_says_how_far(quick: SparkSession, tmp_path: Path, gate: Gate) -> None:
    run, source = started(quick, tmp_path)
    until(lambda: run.status.recovery == HALF)
    assert run.status.phase == "recovering" and str(run.status.recovery) == "3 of 12 shards, 1.2 of 4.0 GiB (fetching)"
    until(lambda: ns.open(tmp_path).status.recovery == HALF)
    assert ns.open(tmp_path).status.message == run.status.message == "Recovering: 3 of 12 shards, 1.2 of 4.0 GiB (fetching)"
    source.add([(1,)])
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(run.view("v").count()))
    asking.start()
    asking.join(0.2)
    assert asking.is_alive()
    gate.open.set()
    asking.join(60)
    run.processAllAvailable()
    assert answers and run.view("v").count() == 1 and run.recovered.epoch == 0 and not run.takeover.epoch
    until(lambda: ns.open(tmp_path).status.phase == "running")
    run.stop()
    assert (run.status.phase, ns.open(tmp_path).status.phase) == ("stopped", "stopped")


def test_an_error_of_recovery_reaches_all_who_wait_for_it(quick: SparkSession, tmp_path: Path, gate: Gate) -> None:
    gate.failing = True
    run, _ = started(quick, tmp_path)
    gate.open.set()
    for ask in (run.awaitTermination, run.processAllAvailable, lambda: run.view("v"), lambda: run.recovered, lambda: run.safe):
        with pytest.raises(ns.Corrupt, match="missing on every tier"):
            ask()
    assert isinstance(run.exception(), ns.Corrupt) and not run.isActive
    assert ns.open(tmp_path).status.phase == run.status.phase == "failed"


def test_who_follows_a_run_shuts_it_out_before_it_waits_for_cores_which_that_one_may_hold(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest: list[int] = []
    monkeypatch.setattr(starting, "is_unshared", lambda _, home: newest.append(newest_generation(LocalDisk(home).sizes(RUNS))))
    flow = ns.Flow("shop", quick)
    flow.view("v", flow.source("s", ns.memory("x long")))
    starting.begin(flow.program(), tmp_path, 1).recover().close()
    following = starting.begin(flow.program(), tmp_path, 1, follows=1)
    assert newest == [0]
    following.recover().close()
    assert newest == [0, 2]


def test_a_run_can_be_stopped_while_it_recovers(quick: SparkSession, tmp_path: Path, gate: Gate) -> None:
    run, _ = started(quick, tmp_path)
    until(lambda: run.status.recovery == HALF)
    stopping = threading.Thread(target=run.stop)
    stopping.start()
    gate.open.set()
    stopping.join(60)
    assert not run.isActive and run.exception() is None
    with pytest.raises(ns.Conflict, match="before it had recovered"):
        run.view("v")


def test_a_sink_may_stop_the_run(quick: SparkSession, tmp_path: Path) -> None:
    flow, source, got = ns.Flow("shop", quick), ns.memory("x long"), list[int]()
    rows = flow.source("s", source)

    def take(changes: Any, epoch: int) -> None:
        got.append(epoch)
        run.stop()

    flow.sink("out", rows, ns.foreachEpoch(take))
    run = flow.start(tmp_path, shards=1)
    source.add([(1,)])
    assert run.awaitTermination(60)
    assert got == [1] and run.status.phase == "stopped" and ns.open(tmp_path).status.sinks == {"out": 1}
