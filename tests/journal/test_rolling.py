"""Rolling up: every step is done and synced on every tier before the next relies on it; what may be needed again goes last."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from nosync.journal.entries import Computed, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import OPENINGS, RECORDS, ROLLUPS, SEGMENTS, TAKEN
from nosync.journal.rolling import Roller
from nosync.model.compaction import DEFAULT, Compaction
from nosync.model.errors import Fenced
from nosync.model.estimate import LEAST_RECORDS
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote

Done = list[tuple[str, str]]  # what was done, and to which folder


def folders(names: Iterable[str]) -> list[str]:
    return sorted({name.rpartition("/")[0] for name in names})


class Disk(LocalDisk):
    """Notes what changes it."""

    def __init__(self, root: Path, done: Done) -> None:
        super().__init__(root)
        self.done = done

    def replace(self, name: str, content: bytes) -> None:
        super().replace(name, content)
        self.done += [("write", folder) for folder in folders([name])]

    def delete(self, name: str) -> None:
        super().delete(name)
        self.done += [("delete", folder) for folder in folders([name])]

    def sync_files(self, names: Iterable[str]) -> None:
        self.done += [("sync files", folder) for folder in folders(names)]

    def sync_folders(self, names: Iterable[str]) -> None:
        self.done += [("sync folders", folder) for folder in folders(names)]


class Rolling:
    """A journal of some epochs and its roller, on a disk that notes."""

    def __init__(self, home: Path, remote: Objects | None = None, every: int = 5) -> None:
        self.done: Done = []
        self.disk, self.remote = Disk(home, self.done), remote
        self.journal = Journal(self.disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.roller = Roller(self.journal, self.disk, remote, every)

    def compute(self, first: int, last: int) -> None:
        for epoch in range(first, last + 1):
            self.journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}), Computed(epoch, (), {}, {}))
        self.journal.ship()

    def roll(self) -> None:
        assert self.roller.step(0)
        assert self.roller.step(self.journal.number)


@pytest.fixture
def remote() -> Objects:
    return open_remote(f"memory://{uuid4().hex}")


@pytest.mark.parametrize(("knobs", "rolls"), [(Compaction(1 << 30), False), (Compaction(1000), True), (DEFAULT, False)])
def test_a_closed_segment_is_rolled_up_before_there_are_many_records(tmp_path: Path, knobs: Compaction, rolls: bool) -> None:
    rolling = Rolling(tmp_path, every=1024)
    rolling.roller.knobs = knobs
    rolling.compute(1, 2 * LEAST_RECORDS)
    assert rolling.roller.step(0) == rolls


def test_the_past_is_synced_before_the_rollup_and_this_before_a_record_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    look = rolling.journal.look

    def looking() -> None:
        look()
        rolling.done.append(("look", ""))

    monkeypatch.setattr(rolling.journal, "look", looking)
    rolling.done.clear()
    rolling.roll()
    past = [SEGMENTS, OPENINGS, TAKEN]
    steps = [
        [("look", "")],
        [("write", folder) for folder in past],
        [("sync files", folder) for folder in sorted(past)],
        [("sync folders", folder) for folder in sorted(past)],
        [("write", ROLLUPS), ("sync files", ROLLUPS), ("sync folders", ROLLUPS)],
        [("look", "")],
        [("delete", RECORDS)] * 5,
    ]
    assert rolling.done == [one for step in steps for one in step]


def test_the_remote_has_what_the_home_has(tmp_path: Path, remote: Objects) -> None:
    rolling = Rolling(tmp_path, remote)
    rolling.compute(1, 5)
    rolling.roll()
    for folder in (SEGMENTS, OPENINGS, TAKEN, ROLLUPS):
        assert {name: remote.read(name) for name in remote.sizes(folder)} == {
            name: rolling.disk.read(name) for name in rolling.disk.sizes(folder)
        }
    assert rolling.disk.sizes(ROLLUPS)


def test_nothing_is_rolled_up_before_every_tier_has_the_records(tmp_path: Path) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    assert rolling.roller.step(0)
    number = rolling.journal.number
    assert not rolling.roller.step(number - 1)
    assert not rolling.disk.sizes(ROLLUPS)
    assert rolling.roller.step(number)
    assert rolling.disk.sizes(ROLLUPS)


def test_it_is_time_when_there_are_as_many_records_as_said(tmp_path: Path) -> None:
    rolling = Rolling(tmp_path, every=5)
    rolling.compute(1, 3)
    assert rolling.journal.number == 4 and not rolling.roller.step(0)
    rolling.compute(4, 4)
    assert rolling.roller.step(0)


def test_what_comes_while_a_rollup_waits_is_no_part_of_it(tmp_path: Path) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    assert rolling.roller.step(0)
    rolling.compute(6, 7)
    assert rolling.roller.step(rolling.journal.number)
    assert (rolling.journal.base, rolling.journal.number) == (6, 8)
    assert len(rolling.disk.sizes(RECORDS)) == 2
    assert set(rolling.journal.image.opened) == {6, 7}
    assert len(rolling.journal.recent) == 2


def test_a_rollup_holds_nothing_that_is_in_the_segment(tmp_path: Path) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    assert rolling.roller.step(0)
    assert rolling.roller.candidate is not None
    assert not rolling.roller.candidate.image.opened
    assert rolling.journal.image.opened


def test_what_an_earlier_try_wrote_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    assert rolling.roller.step(0)
    with monkeypatch.context() as broken:
        broken.setattr(rolling.roller, "_forget", failing)
        with pytest.raises(OSError):
            rolling.roller.step(rolling.journal.number)
    rolling.done.clear()
    assert rolling.roller.step(rolling.journal.number)
    assert not [folder for what, folder in rolling.done if what == "write"]


def test_a_deletion_that_failed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    assert rolling.roller.step(0)
    with monkeypatch.context() as broken:
        broken.setattr(rolling.disk, "delete", failing)
        with pytest.raises(OSError):
            rolling.roller.step(rolling.journal.number)
    assert rolling.roller.step(rolling.journal.number)
    assert len(rolling.disk.sizes(RECORDS)) == 1


def failing(*_: Any) -> None:
    raise OSError


def test_a_run_that_is_fenced_while_it_writes_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rolling = Rolling(tmp_path)
    rolling.compute(1, 5)
    assert rolling.roller.step(0)
    write = rolling.roller._write

    def overtaken(texts: dict[str, bytes]) -> None:
        write(texts)
        if any(name.startswith(ROLLUPS) for name in texts):
            rolling.journal.fence(Fenced("another run"))

    monkeypatch.setattr(rolling.roller, "_write", overtaken)
    with pytest.raises(Fenced):
        rolling.roller.step(rolling.journal.number)
    assert len(rolling.disk.sizes(RECORDS)) == 6


def joined(home: Path, remote: Objects, number: int) -> tuple[Journal, Done]:
    """A run that starts, and what it does to its home for it."""
    done: Done = []
    return Journal(Disk(home, done), remote, Runner(number, "host", "boot", 0.0, f"{number:08x}")), done


def test_a_home_that_has_nothing_gets_the_rollup_first_and_synced(tmp_path: Path, remote: Objects) -> None:
    rolling = Rolling(tmp_path / "home", remote)
    rolling.compute(1, 5)
    rolling.roll()
    rolling.compute(6, 6)
    journal, done = joined(tmp_path / "other", remote, 2)
    assert done == [("write", ROLLUPS), ("sync files", ROLLUPS), ("sync folders", ROLLUPS), ("write", RECORDS)]
    assert journal.image.epoch == 6


@pytest.mark.parametrize("shipped", [True, False])
def test_a_home_gets_only_what_it_lacks(tmp_path: Path, remote: Objects, shipped: bool) -> None:
    rolling = Rolling(tmp_path / "home", remote)
    rolling.compute(1, 5)
    rolling.roll()
    if shipped:
        rolling.compute(6, 6)
    agreed = rolling.journal.number
    if not shipped:
        rolling.journal.append(Opened(6, 0.0, {}))  # the other goes on without
    other, _ = joined(tmp_path / "other", remote, 2)
    journal, done = joined(tmp_path / "home", remote, 3)
    assert [folder for what, folder in done if what == "write"] == [RECORDS] * (other.number - agreed)
    assert journal.before is not None and journal.before.run == other.run
