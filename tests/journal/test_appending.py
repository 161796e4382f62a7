"""Appending: once, at the end of the one history, by the newest run alone."""

import math
from pathlib import Path

import numpy as np
import pytest

from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Entry, Opened, Reached
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS, record_name, run_name
from nosync.journal.record import encode
from nosync.model.errors import Fenced, Internal
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk


def start(disk: LocalDisk, number: int = 1) -> Journal:
    return Journal(disk, None, Runner(number, "host", "boot", 0.0, f"{number:08x}"))


@pytest.fixture
def journal(disk: LocalDisk) -> Journal:
    return start(disk)


def test_what_was_noted_goes_along_once(journal: Journal) -> None:
    journal.note(Reached("host", 1))
    journal.append(Opened(1, 0.0, {}))
    journal.append(Opened(2, 0.0, {}))
    entries = [entry for record in journal.after(0) for entry in record.entries]
    assert entries.count(Reached("host", 1)) == 1


def test_without_notes_there_is_nothing_to_flush(journal: Journal) -> None:
    journal.flush()
    assert journal.number == 1
    journal.note(Reached("host", 1))
    journal.flush()
    assert journal.number == 2


@pytest.mark.parametrize("entry", [
    Opened(1, 0.0, {"s": [1]}),  # type: ignore[dict-item]
    Opened(1, math.nan, {}),
    Computed(1, (), {"s": np.int64(3)}, {}),  # type: ignore[dict-item]
    Computed(1, (), {}, {"s": 2.5}),  # type: ignore[dict-item]
], ids=["slice", "time", "rows", "rejected"])  # fmt: skip
def test_what_could_not_be_read_back_is_not_appended(journal: Journal, entry: Entry) -> None:
    with pytest.raises(Internal, match="could not be read back"):
        journal.append(entry)
    journal.append(Opened(1, 0.0, {}))
    assert read_chain(journal.disk).image().last_opened == 1


@pytest.mark.parametrize("name", [record_name(2), run_name(2)], ids=["its record", "its generation"])
def test_where_another_run_has_taken_its_place_nothing_is_appended(journal: Journal, name: str) -> None:
    journal.disk.create(name, b"of another run")
    for _ in range(2):
        with pytest.raises(Fenced):
            journal.append(Opened(1, 0.0, {}))
    assert (journal.number, journal.image.last_opened) == (1, 0)


def test_whoever_waits_for_news_is_woken(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    monkeypatch.setattr(journal.changed, "notify_all", lambda: woken.append(journal.number))
    journal.append(Opened(1, 0.0, {}))
    assert woken == [2]
    journal.fence(Fenced("another run"))
    assert woken == [2, 2]


def test_a_run_says_by_whom_it_was_fenced_first(journal: Journal) -> None:
    journal.fence(Fenced("first"))
    journal.fence(Fenced("second"))
    with pytest.raises(Fenced, match="first"):
        journal.resolve()


def test_a_history_is_known_by_its_first_record_from_its_first_run_on(journal: Journal) -> None:
    assert journal.origin == read_chain(journal.disk).origin == read_chain(journal.disk).digest_at(1)


def test_what_lies_behind_a_gap_is_removed(journal: Journal) -> None:
    for epoch in (1, 2, 3):
        journal.append(Opened(epoch, 0.0, {}))
    journal.disk.delete(record_name(3))
    again = start(LocalDisk(Path(journal.disk.root)), 2)  # type: ignore[attr-defined]
    assert (again.image.last_opened, again.number) == (1, 3)
    assert len(again.disk.sizes(RECORDS)) == 3


class Torn(LocalDisk):
    """A home where another run takes over after the end of the chain was found, and puts its record in the place of a torn one."""

    reads = 0

    def read(self, name: str) -> bytes | None:
        found = super().read(name)
        self.reads += name == record_name(2)
        if name == record_name(2) and self.reads == 3:
            start(LocalDisk(self.root), 3).append(Opened(1, 0.0, {}))
        return found


def test_what_a_newer_run_put_in_the_place_of_a_torn_record_is_not_removed(journal: Journal, disk: LocalDisk) -> None:
    disk.replace(record_name(2), b"torn")
    with pytest.raises(Fenced):
        start(Torn(disk.root), 2)
    assert read_chain(disk).image().last_opened == 1


def test_what_an_overtaken_run_left_in_the_way_is_named_as_such_and_gone_with_the_next_start(disk: LocalDisk) -> None:
    """It went on by itself while it was cut off, and was in the middle of an append when this one took its home over."""
    start(disk)
    journal = start(disk, 2)
    late = encode(journal.number + 1, "1.00000001", "another past", [Opened(1, 0.0, {})])
    disk.create(record_name(late.number), late.content)
    with pytest.raises(Fenced, match="a run that was overtaken has left something where record 3 belongs") as raised:
        journal.append(Opened(1, 1.0, {}))
    assert "Start again" in raised.value.hint
    again = start(disk, 3)
    assert again.append(Opened(1, 2.0, {})) == 4 and read_chain(disk).image().opened[1].at == 2.0
