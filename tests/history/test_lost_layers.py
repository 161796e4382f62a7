"""Which layers are read of an epoch whose home was lost: those that the remote has, where they hold it."""

from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from nosync.history.view_covers import Past, covers_at
from nosync.journal.entries import Computed, Merged, Opened
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.rolling import Roller
from nosync.model.errors import NotInHistory
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

VIEW = SimpleNamespace(trace="v")
EPOCHS = 6


def layer(lower: int, upper: int) -> LayerInfo:
    return LayerInfo("v", ALL_HASHES, Epoch(lower), Epoch(upper), "diffs", f"layers/v/0-f/{lower}-{upper}.arrow", 1, 9, "")


SMALL, MERGED = [layer(epoch, epoch + 1) for epoch in range(1, EPOCHS + 1)], layer(1, 4)


@pytest.fixture
def image() -> Image:
    """Six epochs, the first three merged."""
    found = Image()
    for epoch in range(1, EPOCHS + 1):
        found.apply(RecordNumber(2 * epoch - 1), Opened(Epoch(epoch), 0.0, {}))
        found.apply(RecordNumber(2 * epoch), Computed(Epoch(epoch), (SMALL[epoch - 1],), {}, {}))
    found.apply(RecordNumber(2 * EPOCHS + 1), Merged(MERGED))
    return found


def read(image: Image, epoch: int, past: Past) -> tuple[LayerInfo, ...]:
    return covers_at(image, VIEW, "v", Epoch(epoch), past)[ALL_HASHES]  # type: ignore[arg-type]


def past_with(tmp_path: Path, *layers: LayerInfo) -> Past:
    """The home has nothing, and the remote these."""
    remote = open_remote(f"memory://{uuid4().hex}")
    for one in layers:
        remote.replace(one.path, b"content")
    return Past(LocalDisk(tmp_path), remote, NO_RECORD)


def test_the_fewest_layers_are_read_where_all_are_there(image: Image, tmp_path: Path) -> None:
    assert read(image, 4, past_with(tmp_path, MERGED, *SMALL)) == (SMALL[3], MERGED)


def test_small_layers_are_read_where_the_merged_one_was_lost(image: Image, tmp_path: Path) -> None:
    assert read(image, 4, past_with(tmp_path, *SMALL)) == tuple(reversed(SMALL[:4]))


def test_a_layer_that_was_merged_long_after_its_epochs_is_read_in_their_place(tmp_path: Path) -> None:
    remote, disk = open_remote(f"memory://{uuid4().hex}"), LocalDisk(tmp_path, fsync=lambda descriptor: None)
    journal = Journal(disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
    roller = Roller(journal, disk, remote, every=2)
    for epoch, small in enumerate(SMALL, start=1):
        journal.append(Opened(Epoch(epoch), 0.0, {}))
        journal.append(Computed(Epoch(epoch), (small,), {}, {}))
        _roll(journal, roller)
    journal.append(Merged(MERGED))
    journal.append(Opened(Epoch(7), 0.0, {}))
    journal.append(Computed(Epoch(7), (layer(7, 8),), {}, {}))
    journal.append(Merged(layer(1, 8)))
    _roll(journal, roller)
    for one in (MERGED, *SMALL[3:]):
        remote.replace(one.path, b"content")
    assert read(journal.image, 4, Past(disk, remote, journal.base)) == (SMALL[3], MERGED)


def _roll(journal: Journal, roller: Roller) -> None:
    """Chooses, and rolls up once the remote has it."""
    roller.step(journal.number)
    journal.ship()
    roller.step(journal.number)


def test_an_epoch_that_the_remote_got_as_one_with_later_ones_is_not_kept(image: Image, tmp_path: Path) -> None:
    past = past_with(tmp_path, MERGED, *SMALL[3:])
    assert read(image, 3, past) == (MERGED,)
    with pytest.raises(NotInHistory, match='epoch 2 of view "v" is not kept'):
        read(image, 2, past)
