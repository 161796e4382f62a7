"""Objects of a bucket as a source: none is passed over, and no more names are listed than are asked for."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import obstore
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.taken import Marks, Taken
from nosync.model.errors import Invalid
from nosync.model.source import Position, Slice
from nosync.sources import objects
from nosync.store.addresses import client_of


class Bucket:
    """One in memory; `listed` counts the names that were given out by lists."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.address, self.listed = f"memory://{uuid4().hex}", 0
        self.store, self._list = client_of(self.address, os.environ), obstore.list
        monkeypatch.setattr(objects.obstore, "list", self.list)

    def list(self, *given: Any, **named: Any) -> Iterator[Any]:
        for page in self._list(*given, **named):
            self.listed += len(page)
            yield page

    def put(self, *names: str) -> None:
        for name in names:
            obstore.put(self.store, name, b'{"x": 1}\n')


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setattr(objects, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(objects, "REST", 0)
    monkeypatch.setattr(objects, "PAGE", 10)
    return Bucket(monkeypatch)


@pytest.fixture
def source(quick: SparkSession, bucket: Bucket, tmp_path: Path) -> Callable[..., Any]:
    def started(latest: Slice | None = None, taken: tuple[str, ...] = (), **given: Any) -> Any:
        found = ns.files(bucket.address, format="json", schema="x int", **given)
        found.declare("s", quick)
        found.start(tmp_path / uuid4().hex, Taken(list, latest, type("Names", (Marks,), {"among": lambda _, asked: {*asked} & {*taken}})()))
        return found

    return started


@pytest.mark.parametrize("growing", [True, False])
def test_asking_often_does_not_put_the_next_look_off(
    bucket: Bucket, source: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, growing: bool
) -> None:
    monkeypatch.setattr(objects, "LOOK_SECONDS", 1.0)
    clock = iter(range(10**9))
    monkeypatch.setattr("nosync.sources.objects.time.monotonic", lambda: 1e6 + next(clock) / 10)
    found = source(growing=growing)
    assert found.available() is None
    bucket.put("a")
    assert any(found.available() for _ in range(30))


def epochs(source: Any) -> list[list[str]]:
    found = iter(source.available, None)
    return [[entry[0] for entry in slice["files"]] for slice in found]


@pytest.mark.parametrize("growing", [True, False])
def test_objects_that_a_stream_has_read_are_not_taken_again(bucket: Bucket, source: Callable[..., Any], growing: bool) -> None:
    bucket.put("day 1/a", "day 1/b", "day 2/c")
    address = bucket.address.replace("memory://", "memory+again://")
    before = source(growing=growing).continue_from(Position('{"logOffset":3}', (f"{address}/day%201/a", f"{address}/day%201/b")))
    assert (before["files"], before["last"]) == ([], "day 1/b")
    taken = tuple(entry[0] for entry in before["before"])
    assert epochs(source(before, taken, growing=growing)) == [["day 2/c"]]


def test_a_stream_over_another_bucket_is_not_gone_on_from(source: Callable[..., Any]) -> None:
    with pytest.raises(Invalid, match='does not read "memory://another/day", as the query has'):
        source().continue_from(Position('{"logOffset":3}', ("memory://another/day/a",)))
    with pytest.raises(Invalid, match="reads files, and the query did not"):
        source().continue_from(Position("17"))


def test_growing_names_are_taken_in_their_order_whatever_their_times(bucket: Bucket, source: Callable[..., Any]) -> None:
    bucket.put("c", "b", "a")
    growing = source(growing=True, maxFilesPerTrigger=1)
    first = growing.available()
    assert [entry[0] for entry in first["files"]] == ["a"]
    assert epochs(source(first, growing=True, maxFilesPerTrigger=2)) == [["b", "c"]]
    assert epochs(source(maxFilesPerTrigger=2)) == [["c", "b"], ["a"]]


def test_a_growing_name_that_must_wait_is_not_passed_over(
    bucket: Bucket, source: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first object is too young, or changes between list and fetch."""
    bucket.put("b", "a")
    times = {entry["path"]: entry["last_modified"].timestamp() for page in obstore.list(bucket.store) for entry in page}
    growing = source(growing=True, minFileAge="1 hour")
    monkeypatch.setattr("nosync.sources.files.time.time_ns", lambda: int((times["b"] + times["a"]) / 2 * 1e9) + 3_600_000_000_000)
    assert growing.available() is None
    monkeypatch.undo()
    monkeypatch.setattr(objects, "LOOK_SECONDS", 0.0)
    changing = source(growing=True)
    get, changed = obstore.get, ["a"]

    def changed_meanwhile(store: Any, name: str, **named: Any) -> Any:
        if name in changed:
            changed.remove(name)
            bucket.put(name)
        return get(store, name, **named)

    monkeypatch.setattr(objects.obstore, "get", changed_meanwhile)
    assert changing.available() is None
    assert epochs(changing) == [["a", "b"]]


@pytest.mark.parametrize("growing", [True, False])
def test_a_backlog_is_not_listed_again_for_each_epoch(bucket: Bucket, source: Callable[..., Any], growing: bool) -> None:
    """500 objects in epochs of 5, read in pages of 10 names: a whole list for each epoch would give 25,000 names or more."""
    names = [f"{number:04}" for number in range(500)]
    bucket.put(*names)
    running = source(growing=growing, maxFilesPerTrigger=5)
    assert [name for epoch in epochs(running) for name in epoch] == names
    assert bucket.listed <= 1000
    before = bucket.listed
    bucket.put("0500")
    assert epochs(running) == [["0500"]]
    assert bucket.listed - before <= (1 if growing else 2 * 501)
    before = bucket.listed
    again = source({"files": [], "last": "0499"}, tuple(names), growing=growing, maxFilesPerTrigger=5)
    assert epochs(again) == [["0500"]]
    assert bucket.listed - before <= (1 if growing else 2 * 501)
