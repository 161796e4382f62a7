"""Sweeping: only what no record can name any more goes, and only once everybody knows that it may."""

from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Declared, Opened, Restored, Swept
from nosync.journal.journal import Journal
from nosync.journal.names import LAYERS, layer_path
from nosync.model.errors import Fenced
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.model.shards import shard_ranges
from nosync.store.disk import LocalDisk
from nosync.tiers.sweeper import Sweeper, sweepable

FOLDER = f"layers/v/{ALL_HASHES}"


@pytest.mark.parametrize(
    ("name", "swept"),
    [
        ("000000000005-6-1.0a-0b.arrow", True),  # of an earlier run
        ("000000000005-9-1.0a-0b.arrow", True),
        ("000000000009-10-1.0a-0b.arrow", True),
        ("000000000005-6-2.0a-0b.arrow", True),  # of this one, computed
        ("000000000007-8-2.0a-0b.arrow", True),
        ("000000000008-9-2.0a-0b.arrow", False),  # not computed yet
        ("000000000005-7-2.0a-0b.arrow", False),  # merged: may be recorded yet
        ("000000000005-6-3.0a-0b.arrow", False),  # of a newer run
        ("somebody.arrow", False),
    ],
)
def test_swept_is_what_can_never_be_named_by_a_record(name: str, swept: bool) -> None:
    assert sweepable(f"{FOLDER}/{name}", generation=2, epoch=7) == swept


class Sweeping:
    """A journal with one epoch and a file that nobody named."""

    def __init__(self, home: Path) -> None:
        self.disk = LocalDisk(home, fsync=lambda descriptor: None)
        self.journal = Journal(self.disk, None, Runner(1, "host", "boot", 0.0, "00000001"))
        self.journal.append(Declared("shop", 1, {}, {}, {}, feeders={"v": ["v"]}))
        self.named, self.orphan = (layer_path("v", shard_ranges(1)[0], 1, 2, self.journal.run) for _ in range(2))
        for name in (self.named, self.orphan):
            self.disk.replace(name, b"rows")
        layer = LayerInfo("v", shard_ranges(1)[0], 1, 2, "diffs", self.named, 1, 4, "")
        self.journal.append(Opened(1, 0.0, {}), Computed(1, (layer,), {}, {}))
        self.sweeper = Sweeper(self.journal, self.disk, lambda epoch: epoch)


@pytest.fixture
def sweeping(tmp_path: Path) -> Sweeping:
    return Sweeping(tmp_path)


def test_nothing_goes_before_the_boundary_is_everywhere(sweeping: Sweeping) -> None:
    sweeper, journal = sweeping.sweeper, sweeping.journal
    assert not sweeper.step(1 << 60)
    assert sweeper.look(journal.image) == 1
    assert journal.image.swept == (1, 1)
    assert sweeper.boundary == journal.number
    assert not sweeper.step(journal.number - 1)
    assert sweeping.orphan in sweeping.disk.sizes(LAYERS)
    assert sweeper.step(journal.number)
    assert set(sweeping.disk.sizes(LAYERS)) == {sweeping.named}
    assert sweeper.deleted == 1
    assert not sweeper.step(1 << 60)


def test_a_boundary_is_recorded_once(sweeping: Sweeping) -> None:
    for _ in range(3):
        sweeping.sweeper.look(sweeping.journal.image)
    entries = [entry for record in sweeping.journal.after(0) for entry in record.entries]
    assert sum(isinstance(entry, Swept) for entry in entries) == 1


def test_where_there_is_nothing_to_sweep_nothing_is_recorded(sweeping: Sweeping) -> None:
    sweeping.disk.delete(sweeping.orphan)
    number = sweeping.journal.number
    assert sweeping.sweeper.look(sweeping.journal.image) == 0
    assert sweeping.journal.number == number


def test_a_run_that_was_overtaken_deletes_nothing(sweeping: Sweeping) -> None:
    sweeping.sweeper.look(sweeping.journal.image)
    number = sweeping.journal.number
    Journal(sweeping.disk, None, Runner(2, "host", "boot", 0.0, "00000002"))
    with pytest.raises(Fenced):
        sweeping.sweeper.step(number)
    assert sweeping.orphan in sweeping.disk.sizes(LAYERS)


def test_what_a_record_has_come_to_name_since_it_was_found_stays(sweeping: Sweeping) -> None:
    sweeper, journal = sweeping.sweeper, sweeping.journal
    assert sweeper.look(journal.image) == 1
    layer = LayerInfo("v", shard_ranges(1)[0], 1, 2, "diffs", sweeping.orphan, 1, 4, "")
    journal.append(Restored((sweeping.named,), (layer,)))
    assert sweeper.step(journal.number) and sweeper.deleted == 0
    assert sweeping.disk.exists(sweeping.orphan)
