"""The queries of Nexmark: at every epoch what Spark answers in batch, wherever the stream is cut, and after a crash."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from bench.nexmark.events import Events
from bench.nexmark.files import TABLES, TAKEN, side, sources, write
from bench.nexmark.queries import QUERIES
from nosync.runtime.stepping import Stepping
from nosync.testing import Batch, difference

EVENTS, EPOCHS, CRASHED = 500, 3, 2


class Crash(Exception):
    """In place of a killed driver: the epoch's job is done, its record is not written."""


class Clock:
    """Goes on by four seconds with each epoch that is opened, so that some windows of ten have several."""

    def __init__(self) -> None:
        self.at = datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.at


def _flow(spark: SparkSession, folder: Path) -> ns.Flow:
    flow = ns.Flow("nexmark", spark)
    sources(flow, folder)
    for name, query in QUERIES.items():
        flow.sql(f"create view {name} as {query}")
    return flow


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


def _run_with_a_crash(flow: ns.Flow, home: Path, clock: Clock) -> list[float]:
    """All epochs, one of them computed twice; returns when each was opened."""
    stepping, opened = Stepping(flow.program(), home, 2, clock=clock), []
    for epoch in range(1, EPOCHS + 1):
        clock.at += 4
        opened.append(clock.at)
        if epoch == CRASHED:
            _crash(stepping)
            clock.at += 100
            stepping = Stepping(flow.program(), home, 2, clock=clock)
        stepping.step()
    stepping.close()
    return opened


@pytest.mark.timeout(900)
def test_the_queries_of_nexmark_equal_batch_at_every_epoch_and_after_a_crash(quick: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    cuts = Events(EVENTS, seed=3, micros=400_000).cut([*sorted(chance.sample(range(50, EVENTS), EPOCHS - 1)), EVENTS])
    write(cuts, tmp_path / "files")
    side(quick)
    opened = _run_with_a_crash(_flow(quick, tmp_path / "files"), tmp_path / "home", Clock())
    home = ns.open(tmp_path / "home")
    assert home.epoch == EPOCHS
    for epoch in range(1, EPOCHS + 1):
        tables = {name: quick.createDataFrame(pa.concat_tables(cut[name] for cut in cuts[:epoch])) for name in TABLES if name != "bid"}
        tables["bid"] = quick.createDataFrame(pa.concat_tables(_stamped(cut["bid"], at) for cut, at in zip(cuts[:epoch], opened)))
        batch = Batch(quick, tables)
        for name, query in QUERIES.items():
            batch.sql(f"create view {name} as {query}")
            found = difference(batch.answer(name), home.view(name, at=epoch))
            assert not found, f"{name} at epoch {epoch}: {found}"
    assert not [name for name in home.views if name in QUERIES and not home.view(name).num_rows], "nothing to find"


def _stamped(bids: pa.Table, at: float) -> pa.Table:
    micros = pa.array([round(at * 1e6)] * bids.num_rows, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return bids.append_column(TAKEN, micros)
