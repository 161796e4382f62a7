"""`trigger={"latency": ...}`: what it takes of sources, and of a run. What is decided is tested in tests/model/test_pacing.py."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.model.bound import bound
from nosync.model.source import Limited
from nosync.runtime.pacing import Pacing
from nosync.runtime.trigger import Trigger, trigger_of


class Waiting:
    """A source with so many bytes to take."""

    append_only = True

    def __init__(self, waiting: int) -> None:
        self.waiting, self.allowed = waiting, None

    def declare(self, name: str, spark: Any) -> Any: ...
    def start(self, folder: Path, taken: Any) -> None: ...
    def read(self, spark: Any, slice: Any) -> Any: ...

    def available(self) -> dict[str, int] | None:
        taken = min(self.waiting, self.allowed or self.waiting)
        self.waiting -= taken
        return {"bytes": taken}

    def weight(self, slice: dict[str, int]) -> int:
        return slice["bytes"]

    def allow(self, weight: int | None) -> None:
        self.allowed: int | None = weight


def test_sources_share_what_an_epoch_may_bring_by_what_they_brought() -> None:
    now = [0.0]
    large, small = Waiting(90 << 20), Waiting(1 << 20)
    sources = {"large": bound(large), "small": bound(small)}
    pacing = Pacing(1.0, sources, lambda: now[0])
    sizes = []
    for _ in range(5):
        pacing.begin()
        slices = {name: source.available() for name, source in (("large", large), ("small", small))}
        sizes.append(slices["large"]["bytes"])
        now[0] += 0.1 + sum(slice["bytes"] for slice in slices.values()) / (10 << 20)
        pacing.done(slices)
        large.waiting += 20 << 20
    assert sizes[0] == 90 << 20 and all(0 < size < 90 << 20 for size in sizes[1:])
    assert large.allowed and small.allowed and large.allowed > small.allowed > 0


def test_an_epoch_that_took_little_leaves_a_pause() -> None:
    now = [0.0]
    source = Waiting(1000)
    pacing = Pacing(1.0, {"s": bound(source)}, lambda: now[0])
    for _ in range(3):
        pacing.begin()
        slice = source.available()
        now[0] += 0.1
        pacing.done({"s": slice})
        now[0] += pacing.interval - 0.1
        source.waiting = 1000
    assert 0.5 < pacing.interval < 0.9


@pytest.mark.parametrize("source", [ns.rate(10), ns.files("in", format="json", schema="x int")])
def test_sources_that_can_take_less_say_so(source: Any) -> None:
    assert isinstance(source, Limited)


def test_files_beyond_what_an_epoch_may_bring_wait_for_the_next_one(quick: SparkSession, tmp_path: Path) -> None:
    """And the whole flow with such a trigger, to the end of its input."""
    for number in range(6):
        (tmp_path / f"{number}.json").write_text(f'{{"x": {number}}}\n' * 1000)
    source = ns.files(tmp_path, format="json", schema="x int")
    flow = ns.Flow("paced", quick)
    flow.view("v", flow.source("s", source).groupBy("x").count())
    source.start(tmp_path, Nothing())
    source.allow(20_000)
    assert len((source.available() or {})["files"]) == 2
    source.allow(1)
    assert len((source.available() or {})["files"]) == 1
    source.allow(None)
    assert len((source.available() or {})["files"]) == 3
    with flow.start(tmp_path.with_name("home"), shards=1, trigger={"latency": "200 ms"}) as run:
        run.processAllAvailable()
        assert {row.x: row["count"] for row in run.view("v").collect()} == dict.fromkeys(range(6), 1000)


class Nothing:
    """What a source has given before."""

    latest, skipped = None, frozenset[str]()

    @property
    def marks(self) -> Any:
        return self

    def among(self, texts: Any) -> set[str]:
        return set()


def test_the_trigger_is_read_and_what_makes_no_sense_is_refused() -> None:
    assert trigger_of({"latency": "500 ms"}) == Trigger(latency=0.5)
    for wrong in ({"latency": "0 seconds"}, {"latency": "soon"}, {"latency": 3}, {"latency": "1 second", "once": True}):
        with pytest.raises(ns.Invalid):
            trigger_of(wrong)
