"""Which layers are read of an epoch whose home was lost: those that the remote has, where they hold it."""

from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from nosync.history.home import Past, covers_at
from nosync.journal.entries import Computed, Merged, Opened
from nosync.journal.image import Image
from nosync.model.errors import NotInHistory
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber
from nosync.model.layers import LayerInfo
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


def test_an_epoch_that_the_remote_got_as_one_with_later_ones_is_not_kept(image: Image, tmp_path: Path) -> None:
    past = past_with(tmp_path, MERGED, *SMALL[3:])
    assert read(image, 3, past) == (MERGED,)
    with pytest.raises(NotInHistory, match='epoch 2 of view "v" is not kept'):
        read(image, 2, past)
