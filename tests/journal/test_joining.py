"""A start that must not go on is refused before it fences anybody; what a home has of a remote is not forgotten by leaving it out."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.journal.entries import Computed, Declared, Opened, Reached, Started
from nosync.journal.image import fold
from nosync.journal.joining import histories
from nosync.journal.journal import Journal
from nosync.journal.names import RUNS
from nosync.model.errors import Corrupt, Invalid
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.recovery.plan import Shape
from nosync.recovery.restore import check_recoverable
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote


@pytest.fixture
def remote() -> Objects:
    return open_remote(f"memory://{uuid4().hex}")


def start(home: Path, remote: Objects | None, number: int = 1, detached: bool = False) -> Journal:
    return Journal(LocalDisk(home, fsync=lambda descriptor: None), remote, Runner(number, "host", "boot", 0.0, f"{number:08x}"), detached)


def compute(journal: Journal, first: int, last: int) -> None:
    for epoch in range(first, last + 1):
        journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
        layer = LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", f"layers/v/0-f/{epoch}.arrow", 1, 1, "")
        journal.append(Computed(epoch, (layer,), {}, {}))
    journal.ship()


def generations(journal: Journal) -> int:
    return len(journal.disk.sizes(RUNS))


def test_a_start_that_leaves_the_remote_out_is_refused_and_fences_nobody(tmp_path: Path, remote: Objects) -> None:
    running = start(tmp_path, remote)
    with pytest.raises(Invalid, match=f'has a copy on "{remote.address}"') as refused:
        start(tmp_path, None, 2)
    assert remote.address in refused.value.hint and "NO_REMOTE" in refused.value.hint
    assert generations(running) == 1
    compute(running, 1, 2)


def test_going_on_without_the_remote_is_said_once(tmp_path: Path, remote: Objects) -> None:
    start(tmp_path, remote).append(Reached("site", 0))
    detached = start(tmp_path, None, 2, detached=True)
    assert "site" not in detached.image.reached
    compute(detached, 1, 2)
    assert start(tmp_path, None, 3).image.epoch == 2


def test_a_home_that_was_detached_comes_back_to_its_remote(tmp_path: Path, remote: Objects) -> None:
    start(tmp_path, remote)
    compute(start(tmp_path, None, 2, detached=True), 1, 2)
    back = start(tmp_path, remote, 3)
    assert (back.image.epoch, back.shipped) == (2, back.number)


def test_a_home_that_was_detached_does_not_give_up_its_epochs_silently(tmp_path: Path, remote: Objects) -> None:
    start(tmp_path / "one", remote)
    compute(start(tmp_path / "one", None, 2, detached=True), 1, 2)
    other = start(tmp_path / "two", remote, 3)
    compute(other, 1, 1)
    runs = len(remote.sizes(RUNS))
    with pytest.raises(Invalid, match="went on without a remote, and the remote without this home"):
        start(tmp_path / "one", remote, 4)
    assert len(remote.sizes(RUNS)) == runs
    compute(other, 2, 2)


def test_the_remote_of_another_flow_is_refused_and_its_run_goes_on(tmp_path: Path, remote: Objects) -> None:
    running = start(tmp_path / "one", remote)
    compute(start(tmp_path / "two", None), 1, 1)
    with pytest.raises(Invalid, match="different histories"):
        start(tmp_path / "two", remote, 2)
    compute(running, 1, 1)
    running.look()


def test_a_stale_home_is_judged_by_what_the_remote_has(tmp_path: Path, remote: Objects) -> None:
    compute(start(tmp_path / "one", remote), 1, 2)
    other = start(tmp_path / "two", remote, 2)
    other.append(Declared("shop", 4, {}, {}, {}))
    compute(other, 3, 5)
    found = histories(LocalDisk(tmp_path / "one"), remote)
    assert (found.home.image().epoch, found.believed.image()) == (2, other.image)
    other.look()


def test_state_that_cannot_be_put_together_is_noticed_before_anybody_is_fenced(tmp_path: Path, remote: Objects) -> None:
    running = start(tmp_path, remote)
    compute(running, 1, 2)
    chain, shape = histories(running.disk, remote).believed, Shape({"v": frozenset("v")}, unrepeatable=frozenset("v"))
    with pytest.raises(Corrupt, match="cannot be put together again"):
        check_recoverable(chain, running.disk, remote, shape, lambda layer: True, frozenset())
    running.look()


def test_credentials_are_not_recorded(tmp_path: Path) -> None:
    journal = start(tmp_path, open_remote(f"memory://key:secret@{uuid4().hex}/a?signature=secret"))
    assert journal.image.started is not None and journal.image.started.remote.startswith("memory://")
    assert all(b"secret" not in (journal.disk.read(name) or b"") for name in journal.disk.sizes(""))


def test_what_another_remote_had_is_not_claimed_for_a_new_one() -> None:
    started = Started("1.a", 1, "host", "boot", 0.0, "s3://one")
    assert fold([started, Reached("site", 3), started]).reached == {"site": 3}
    assert fold([started, Reached("site", 3), Started("2.b", 1, "host", "boot", 0.0, "s3://two")]).reached == {}


def test_a_home_that_was_detached_and_computed_nothing_goes_on_from_its_remote(tmp_path: Path, remote: Objects) -> None:
    compute(start(tmp_path / "home", remote), 1, 2)
    start(tmp_path / "home", None, 2, detached=True)
    compute(start(tmp_path / "other", remote, 3), 3, 4)
    assert start(tmp_path / "home", remote, 4).image.epoch == 4


def test_a_home_whose_last_epochs_never_reached_the_remote_goes_on_from_there(tmp_path: Path, remote: Objects) -> None:
    running = start(tmp_path / "home", remote)
    compute(running, 1, 2)
    running.append(Opened(3, 0.0, {"s": {"number": 7}}))
    running.append(Computed(3, (), {}, {}))
    compute(start(tmp_path / "other", remote, 2), 3, 4)
    again = start(tmp_path / "home", remote, 3)
    assert (again.image.epoch, again.image.opened[3].slices) == (4, {"s": {"number": 3}})


def test_what_a_remote_has_reached_is_known_after_a_restart(tmp_path: Path, remote: Objects) -> None:
    running = start(tmp_path / "home", remote)
    compute(running, 1, 2)
    running.append(Reached("site", 2))
    assert start(tmp_path / "home", remote, 2).image.reached == {"site": 2}
