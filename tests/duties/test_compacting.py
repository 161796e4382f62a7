"""Giving up: what one tier still reads stays, whatever the others have; what came back damaged is of use to nobody."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nosync.duties.compacting import Compactor
from nosync.journal.entries import Computed, Merged, Opened, Thinned
from nosync.journal.journal import Journal
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


def layer(journal: Journal, lower: int, upper: int, bottom: bool = False) -> LayerInfo:
    path = f"layers/v/0-f/{lower:012d}-{upper}-1.aa-{lower}{upper}.arrow"
    journal.disk.replace(path, b"x" * 100)
    return LayerInfo("v", ALL_HASHES, lower, upper, "upserts", path, 1, 100, "abc", bottom=bottom)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Three epochs, of which the last is kept; the home has all of them in one layer, and the first two in another."""
    journal = Journal(LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri()), this_process(0.0))
    for epoch in (1, 2, 3):
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (layer(journal, epoch, epoch + 1),), {}, {}))
    journal.append(Merged(layer(journal, 1, 3, bottom=True)), Merged(layer(journal, 1, 4, bottom=True)), Thinned(3, (), ()))
    return journal


def compactor(journal: Journal, uploaded: set[str], whole: bool = True) -> Compactor:
    shipper: Any = SimpleNamespace(uploaded=uploaded, wanted={}, lose=uploaded.discard)
    return Compactor(journal, journal.disk, journal.remote, None, shipper, lambda newest: newest, lambda: None, lambda layer: whole)


def left(journal: Journal) -> set[tuple[int, int]]:
    return {(layer.lower, layer.upper) for layer in journal.image.layers()}


def test_what_only_the_remote_reads_is_not_given_up(journal: Journal) -> None:
    names = {(layer.lower, layer.upper): layer.path for layer in journal.image.layers()}
    compactor(journal, {names[1, 3], names[3, 4]}).step(journal.number)
    assert left(journal) == {(1, 3), (3, 4), (1, 4)}
    compactor(journal, {names[1, 3], names[3, 4], names[1, 4]}).step(journal.number)
    assert left(journal) == {(1, 4)}


def test_files_go_once_every_tier_has_the_record_that_says_so(journal: Journal) -> None:
    names = {(layer.lower, layer.upper): layer.path for layer in journal.image.layers()}
    work = compactor(journal, {names[1, 4]})
    before = journal.number
    assert work.step(before) and not work.step(before)
    assert journal.disk.exists(names[1, 2])
    assert work.step(journal.number)
    assert not journal.disk.exists(names[1, 2]) and journal.disk.exists(names[1, 4])


@pytest.mark.parametrize("whole", [True, False])
def test_what_the_home_lacks_comes_back_if_it_is_whole(journal: Journal, whole: bool) -> None:
    name = next(layer.path for layer in journal.image.layers() if (layer.lower, layer.upper) == (1, 4))
    assert journal.remote is not None
    journal.remote.upload(name, journal.disk)
    journal.disk.delete(name)
    uploaded = {name}
    assert compactor(journal, uploaded, whole).step(journal.number)
    assert journal.disk.exists(name) == journal.remote.exists(name) == (name in uploaded) == whole
