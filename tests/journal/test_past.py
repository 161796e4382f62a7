"""The past is read from the home where the home has it; the remote is asked only for what is missing there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from nosync.journal.entries import Computed, Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import SEGMENTS
from nosync.journal.past import TieredReader, openings, past_files, rolled_openings_of, whole_image
from nosync.journal.rolling import Roller
from nosync.journal.taken import next_tile, taken_from
from nosync.model.errors import Corrupt, Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


class Outage:
    """A remote that nobody reaches."""

    def __getattr__(self, call: str) -> Any:
        raise Unavailable(f"{call}: the network is down")


def diffs(lower: int, upper: int) -> LayerInfo:
    return LayerInfo("v", ALL_HASHES, lower, upper, "diffs", f"layers/v/0-f/{lower}-{upper}.arrow", 1, 1, "")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    remote = open_remote(f"memory://{uuid4().hex}")
    journal = Journal(LocalDisk(tmp_path, fsync=lambda descriptor: None), remote, Runner(1, "host", "boot", 0.0, "00000001"))
    roller = Roller(journal, journal.disk, remote, 10)
    for epoch in range(1, 41):
        journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
        journal.append(Computed(epoch, (diffs(epoch, epoch + 1),), {}, {}))
        journal.ship()
        roller.step(journal.number)
    return journal


def late(journal: Journal) -> list[Any]:
    return journal.after(journal.base)


READERS: dict[str, Callable[[Journal, TieredReader], Any]] = {
    "everything": lambda journal, reader: whole_image(reader, journal.image, journal.base, late(journal)),
    "all openings": lambda journal, reader: openings(reader, journal.base, late(journal)),
    "some openings": lambda journal, reader: rolled_openings_of(reader, journal.base, {5, 17}, 2),
    "what was taken": lambda journal, reader: taken_from(["s"], reader, journal.base, late(journal), {})["s"].latest,
    "the next tile": lambda journal, reader: next_tile(reader, late(journal), {}),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
def test_an_outage_stops_nobody_whose_home_has_everything(journal: Journal, read: Callable[[Journal, TieredReader], Any]) -> None:
    known = read(journal, TieredReader(journal.disk, journal.remote))
    assert read(journal, TieredReader(journal.disk, Outage())) == known  # type: ignore[arg-type]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("lost", ["all", "the oldest", "the newest"])
def test_what_the_home_lacks_is_read_from_the_remote(journal: Journal, read: Callable[[Journal, TieredReader], Any], lost: str) -> None:
    known = read(journal, TieredReader(journal.disk, journal.remote))
    names = sorted(journal.disk.sizes("journal/segments")) if lost != "all" else list(journal.disk.sizes("journal"))
    for name in {"all": names, "the oldest": names[:1], "the newest": names[-1:]}[lost]:
        journal.disk.delete(name)
    assert read(journal, TieredReader(journal.disk, journal.remote)) == known


def test_epochs_that_came_while_the_tiers_lagged_behind_a_roll_up_are_read_as_of_themselves(tmp_path: Path) -> None:
    """What is rolled up was chosen long before: since then epochs went on, and a merged layer stands for all of them."""
    journal = Journal(LocalDisk(tmp_path, fsync=lambda descriptor: None), None, Runner(1, "host", "boot", 0.0, "00000001"))
    roller = Roller(journal, journal.disk, None, 10)
    for epoch in range(1, 21):
        journal.append(Opened(epoch, 0.0, {}))
        journal.append(Computed(epoch, (diffs(epoch, epoch + 1),), {}, {}))
        roller.step(0)
    journal.append(Merged(diffs(1, 21)))
    assert roller.step(journal.number) and journal.base < 20
    for epoch in range(1, 20):
        found = journal.image.covers("v", epoch)[ALL_HASHES]
        assert sorted(layer.lower for layer in found) == list(range(1, epoch + 1))


def test_who_reads_the_past_holds_up_nobody(journal: Journal) -> None:
    """What is read is a copy: the flow goes on meanwhile."""
    image, base = journal.snapshot()
    journal.append(Opened(41, 0.0, {}))
    assert (image.last_opened, journal.image.last_opened, base) == (40, 41, journal.base)


READERS_OF_RECORDS = ("everything", "all openings", "some openings", "what was taken")


@pytest.mark.parametrize("read", [READERS[name] for name in READERS_OF_RECORDS], ids=READERS_OF_RECORDS)
def test_a_past_that_is_torn_everywhere_is_missed(journal: Journal, read: Callable[[Journal, TieredReader], Any]) -> None:
    for folder in ("journal/openings", "journal/taken"):
        for name in journal.disk.sizes(folder):
            journal.disk.delete(name)
    for name in journal.disk.sizes(SEGMENTS):
        journal.disk.replace(name, b"torn")
    with pytest.raises(Corrupt, match="are in no segment"):
        read(journal, TieredReader(journal.disk))
    with pytest.raises(Corrupt, match="are in no segment"):
        past_files(TieredReader(journal.disk), journal.base)
