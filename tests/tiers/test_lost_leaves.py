"""Layers of earlier shards that nobody has any more: what stands for them in today's shards is shipped, and nothing waits for ever."""

from contextlib import suppress
from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Merged, Opened, Rescaled
from nosync.journal.journal import Journal
from nosync.model.errors import Corrupt, Unavailable
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.shards import shard_ranges
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from nosync.tiers.layer_shipper import LayerShipper
from nosync.tiers.record_shipper import RecordShipper

from .test_shippers import compute, shipped

HALVES = shard_ranges(2)


@pytest.fixture
def remote(tmp_path: Path) -> Objects:
    return open_remote((tmp_path / "remote").as_uri())


@pytest.fixture
def journal(tmp_path: Path, remote: Objects) -> Journal:
    return Journal(LocalDisk(tmp_path / "home"), remote, this_process(0.0))


def half(journal: Journal, shard: int, lower: int, upper: int) -> LayerInfo:
    path = f"layers/v/{HALVES[shard]}/{lower}-{upper}-1.0-{shard}.arrow"
    journal.disk.replace(path, b"x" * 100)
    return LayerInfo("v", HALVES[shard], lower, upper, "upserts", path, 1, 100, "abc")


def rescaled(journal: Journal) -> None:
    """One shard up to epoch 3, two from then on."""
    compute(journal, 1, 2, 3)
    journal.append(Rescaled(4, 2, 0.0))


def compute_halves(journal: Journal, *epochs: int) -> None:
    for epoch in epochs:
        journal.append(Opened(epoch, 0.0, {}))
        journal.append(Computed(epoch, tuple(half(journal, shard, epoch, epoch + 1) for shard in (0, 1)), {}, {}))


def merge_halves(journal: Journal, lower: int, upper: int) -> None:
    for shard in (0, 1):
        journal.append(Merged(half(journal, shard, lower, upper)))


def shippers(journal: Journal, remote: Objects) -> tuple[RecordShipper, LayerShipper]:
    return RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)


def ship(records: RecordShipper, layers: LayerShipper) -> None:
    while layers.step() | records.step():
        pass


LOST = "layers/v/0-f/2-3-1.0-0.arrow"


def test_what_stands_for_a_lost_layer_in_each_of_todays_shards_goes_in_its_place(journal: Journal, remote: Objects) -> None:
    rescaled(journal)
    compute_halves(journal, 4, 5)
    merge_halves(journal, 1, 6)
    journal.disk.delete(LOST)
    records, layers = shippers(journal, remote)
    ship(records, layers)
    assert shipped(remote).count("1-6") == 2
    assert (layers.standing(records).epoch, layers.standing(records).behind) == (5, 0)


def test_epochs_of_which_a_layer_is_lost_are_no_safe_points(journal: Journal, remote: Objects) -> None:
    rescaled(journal)
    merge_halves(journal, 1, 4)  # before there is any epoch of these shards
    journal.disk.delete(LOST)
    records, layers = shippers(journal, remote)
    said = set()
    while layers.step() | records.step():
        said.add(layers.standing(records).epoch)
    assert said <= {0, 1, 3} and layers.standing(records).epoch == 3


def test_while_half_of_what_stands_for_a_lost_layer_is_missing_it_waits(journal: Journal, remote: Objects) -> None:
    rescaled(journal)
    merge_halves(journal, 1, 4)
    journal.disk.delete(LOST)
    upper = next(name for name in journal.disk.sizes("layers") if str(HALVES[1]) in name)
    content = journal.disk.read(upper)
    journal.disk.delete(upper)
    records, layers = shippers(journal, remote)
    with suppress(Corrupt, Unavailable):
        ship(records, layers)
    assert layers.standing(records).epoch <= 1
    journal.disk.replace(upper, content)
    ship(records, layers)
    assert layers.standing(records).epoch == 3


def test_a_run_that_finds_all_there_that_stands_for_a_lost_layer_waits_for_nothing(journal: Journal, remote: Objects) -> None:
    rescaled(journal)
    merge_halves(journal, 1, 4)
    compute_halves(journal, 4)
    journal.disk.delete(LOST)
    ship(*shippers(journal, remote))
    records, layers = shippers(journal, remote)
    assert layers.behind == 0 and layers.standing(records).epoch == 4
    compute_halves(journal, 5)
    ship(records, layers)
    assert layers.standing(records).epoch == 5
