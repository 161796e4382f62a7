"""What a source hands out is recorded, and read, as it comes out of JSON; anything else is refused, and nothing recorded."""

import datetime
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from nosync.journal.chain import read_chain
from nosync.journal.entries import Opened
from nosync.journal.journal import Journal
from nosync.model.engine import Outcome
from nosync.model.errors import Failed
from nosync.model.run import Runner
from nosync.runtime.epochs import Epochs
from nosync.store.disk import LocalDisk


class Given:
    """A source that hands out what it was given, and becomes `again` before its epoch is computed."""

    def __init__(self, *slices: Any, again: Any = None) -> None:
        self.slices, self.again = list(slices), again
        self.acknowledged: list[Any] = []

    def available(self) -> Any:
        return self.slices.pop(0) if self.slices else None

    def files(self, slice: dict[str, Any]) -> dict[str, str]:
        return {}

    def acknowledge(self, slice: dict[str, Any]) -> None:
        self.acknowledged.append(slice)

    def reopen(self, slice: dict[str, Any], unreadable: Mapping[str, str]) -> Any:
        return self.again or slice


class Reading:
    """An engine that notes which slices it read."""

    def __init__(self) -> None:
        self.read: list[Any] = []

    def compute(self, openings: list[Opened], covers: Any, targets: Any = None, seen: Any = None) -> Outcome:
        self.read += [opened.slices["s"] for opened in openings]
        return Outcome((), {}, {})


def started(disk: LocalDisk, source: Given) -> tuple[Epochs, Reading]:
    journal, engine = Journal(disk, None, Runner(1, "host", "boot", 0.0, "00000001")), Reading()
    return Epochs(journal, {"s": source}, engine, lambda: 0.0), engine  # type: ignore[arg-type]


WRONG = {
    "a list": [0, 1],
    "a text": "x",
    "a key that is a number": {7: 1},
    "an inner key that is a number": {"parts": [{"offsets": {0: 5}}]},
    "a time": {"at": datetime.datetime(2026, 1, 1)},
    "a set": {"names": {"a"}},
    "bytes": {"token": b"x"},
    "not a number": {"x": math.nan},
    "infinity": {"x": math.inf},
}


@pytest.mark.parametrize("slice", WRONG.values(), ids=WRONG)
def test_a_slice_that_json_cannot_hold_is_refused_and_nothing_recorded(disk: LocalDisk, slice: Any) -> None:
    epochs, engine = started(disk, Given(slice, {"good": 1}))
    for _ in range(2):  # and not passed over for the next one: that would lose its rows
        with pytest.raises(Failed, match='source "s" gave a slice') as error:
            epochs.step()
    assert "available()" in error.value.hint
    assert (engine.read, read_chain(disk).image().last_opened) == ([], 0)


def test_a_slice_is_read_at_first_as_a_recovery_would_read_it(disk: LocalDisk) -> None:
    source = Given({"range": (1, 2), "inner": {"names": ("a",)}})
    epochs, engine = started(disk, source)
    epochs.step()
    recorded = read_chain(disk).image().opened[1].slices["s"]
    assert engine.read == source.acknowledged == [recorded] == [{"range": [1, 2], "inner": {"names": ["a"]}}]


def test_nothing_is_done_around_an_epoch_that_is_none(disk: LocalDisk) -> None:
    epochs, engine = started(disk, Given({"x": 1}))
    within: list[int] = []

    @contextmanager
    def around() -> Iterator[None]:
        yield within.append(epochs.journal.image.epoch)
        within.append(epochs.journal.image.epoch)

    assert epochs.step(around()) and not epochs.step(around())
    assert within == [0, 1] and len(engine.read) == 1


def test_what_a_source_does_to_its_slice_later_is_not_recorded(disk: LocalDisk) -> None:
    slice: dict[str, Any] = {"last": [1]}
    epochs, _ = started(disk, Given(slice))
    opened = epochs._open(1)
    slice["last"].append(2)
    assert opened is not None and opened.slices["s"] == {"last": [1]}


def test_a_slice_that_is_recorded_anew_is_held_to_the_same(disk: LocalDisk) -> None:
    epochs, _ = started(disk, Given({"x": 1}, again={"x": {1}}))
    with pytest.raises(Failed, match='source "s" gave a slice'):
        epochs.step()
    assert read_chain(disk).image().opened[1].slices["s"] == {"x": 1}
