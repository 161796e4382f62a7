"""The queries of Nexmark: at every epoch what Spark answers in batch, wherever the stream is cut, and after a crash."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from bench.nexmark.events import Events
from bench.nexmark.files import write
from bench.nexmark.queries import QUERIES
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from tests.crash.nexmark import judge_nexmark
from tests.crash.nexmark_driver import nexmark_flow

EVENTS, EPOCHS, CRASHED = 500, 3, 2


class Crash(Exception):
    """In place of a killed driver: the epoch's job is done, its record is not written."""


class Clock:
    """Goes on by four seconds with each epoch that is opened, so that some windows of ten have several."""

    def __init__(self) -> None:
        self.at = datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.at


def _crash(stepping: Stepping) -> None:
    """One step that ends when the job is done."""
    compute = stepping.epochs.engine.compute

    def crashing(*given: Any, **named: Any) -> Any:
        compute(*given, **named)
        raise Crash

    stepping.epochs.engine.compute = crashing  # type: ignore[method-assign]
    with pytest.raises(Crash):
        stepping.step()
    stepping.close()


def _run_with_a_crash(flow: ns.Flow, home: Path, clock: Clock) -> None:
    """All epochs, one of them computed twice."""
    stepping = begin(flow.program(), home, 2, clock=clock).recover()
    for epoch in range(1, EPOCHS + 1):
        clock.at += 4
        if epoch == CRASHED:
            _crash(stepping)
            clock.at += 100
            stepping = begin(flow.program(), home, 2, clock=clock).recover()
        stepping.step()
    stepping.close()


@pytest.mark.slow
def test_the_queries_of_nexmark_equal_batch_at_every_epoch_and_after_a_crash(quick: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    cuts = Events(EVENTS, seed=3, micros=400_000).cut([*sorted(chance.sample(range(50, EVENTS), EPOCHS - 1)), EVENTS])
    write(cuts, tmp_path / "files")
    _run_with_a_crash(nexmark_flow(quick, tmp_path / "files"), tmp_path / "home", Clock())
    judge_nexmark(quick, tmp_path / "home", cuts)
    home = ns.open(tmp_path / "home")
    assert not [name for name in home.views if name in QUERIES and not home.view(name).num_rows], "nothing to find"
