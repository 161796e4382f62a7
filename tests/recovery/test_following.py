"""A home that follows a remote has what the newest state needs as it comes, and nothing of its own is lost by it."""

from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Merged, Opened, Restored
from nosync.journal.journal import Journal
from nosync.journal.names import LAYERS, layer_path
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.recovery.following import Follower
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote


@pytest.fixture
def remote(tmp_path: Path) -> Objects:
    return open_remote((tmp_path / "remote").as_uri())


@pytest.fixture
def leading(tmp_path: Path, remote: Objects) -> Journal:
    return Journal(LocalDisk(tmp_path / "leading"), remote, this_process(0.0))


@pytest.fixture
def follower(tmp_path: Path, remote: Objects) -> Follower:
    disk = LocalDisk(tmp_path / "following")
    return Follower(disk, remote, lambda layer: b"bad" not in (disk.read(layer.path) or b"bad"))


def layer(journal: Journal, lower: int, upper: int, content: bytes = b"good") -> LayerInfo:
    path = layer_path("v", ALL_HASHES, lower, upper, journal.run)
    journal.disk.replace(path, content)
    return LayerInfo("v", ALL_HASHES, lower, upper, "upserts", path, 1, len(content), "abc")


def compute(journal: Journal, *layers: LayerInfo) -> None:
    for one in layers:
        journal.append(Opened(one.lower, 0.0, {}), Computed(one.lower, (one,), {}, {}))
    journal.ship()


def arrive(journal: Journal, *layers: LayerInfo) -> None:
    assert journal.remote is not None
    for one in layers:
        journal.remote.upload(one.path, journal.disk)


def held(follower: Follower) -> set[str]:
    return set(follower.disk.sizes(LAYERS))


def test_layers_are_fetched_as_they_arrive_and_once(leading: Journal, follower: Follower) -> None:
    first, second = layer(leading, 1, 2), layer(leading, 2, 3)
    compute(leading, first, second)
    assert follower.step() == 0
    arrive(leading, first)
    assert follower.step() == 1 and held(follower) == {first.path}
    arrive(leading, second)
    assert follower.step() == 1 and follower.step() == 0
    assert held(follower) == {first.path, second.path}


def test_where_a_merged_layer_has_not_arrived_those_it_was_made_of_will_do(leading: Journal, follower: Follower) -> None:
    first, second, both = layer(leading, 1, 2), layer(leading, 2, 3), layer(leading, 1, 3)
    compute(leading, first, second)
    leading.append(Merged(both))
    leading.ship()
    arrive(leading, first, second)
    assert follower.step() == 2 and held(follower) == {first.path, second.path}
    arrive(leading, both)
    assert follower.step() == 1 and held(follower) == {first.path, second.path, both.path}


def test_what_no_record_names_any_more_is_deleted_and_nothing_that_others_left(leading: Journal, follower: Follower) -> None:
    first, again = layer(leading, 1, 2), layer(leading, 1, 2)
    compute(leading, first)
    arrive(leading, first)
    own = layer_path("v", ALL_HASHES, 7, 8, "1.cafe")
    follower.disk.replace(own, b"of an earlier run here")
    follower.step()
    leading.append(Restored((first.path,), (again,)))
    leading.ship()
    arrive(leading, again)
    assert follower.step() == 1 and held(follower) == {again.path, own}


def test_a_damaged_layer_is_left_to_recovery(leading: Journal, follower: Follower) -> None:
    bad = layer(leading, 1, 2, b"bad")
    compute(leading, bad)
    arrive(leading, bad)
    assert follower.step() == 0 and held(follower) == set()


def test_once_stopped_it_deletes_nothing(leading: Journal, follower: Follower) -> None:
    first, again = layer(leading, 1, 2), layer(leading, 1, 2)
    compute(leading, first)
    arrive(leading, first)
    follower.step()
    follower.stop()
    leading.append(Restored((first.path,), (again,)))
    leading.ship()
    follower.step()
    assert first.path in held(follower)


def test_in_the_home_of_the_run_that_leads_there_is_nothing_to_do(leading: Journal, remote: Objects, tmp_path: Path) -> None:
    first = layer(leading, 1, 2)
    compute(leading, first)
    arrive(leading, first)
    leading.disk.delete(first.path)  # as its sweeper may
    assert Follower(LocalDisk(tmp_path / "leading"), remote, lambda _: True).step() == 0
    assert not leading.disk.sizes(LAYERS)
