"""Runs that start at the same time: one of them goes on, and no home is left unusable."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nosync.journal.entries import Opened
from nosync.journal.journal import Journal, take_generation
from nosync.journal.names import RECORDS, RUNS, run_name
from nosync.model.errors import Conflict, Fenced
from nosync.model.run import Runner, this_process
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


def start(home: LocalDisk, number: int, remote: Path | None = None) -> Journal:
    runner = Runner(number, f"host{number}", f"boot{number}", 0.0, f"{number:08x}")
    return Journal(home, open_remote(f"memory://{remote}") if remote else None, runner)


class Slow(LocalDisk):
    """A home where something else happens before some folder is listed for the so-manieth time."""

    def __init__(self, root: Path, folder: str, times: int, meanwhile: Callable[[], object]) -> None:
        super().__init__(root)
        self.folder, self.times, self.meanwhile = folder, times, meanwhile

    def sizes(self, folder: str) -> dict[str, int]:
        self.times -= folder == self.folder
        if folder == self.folder and not self.times:
            self.meanwhile()
        return super().sizes(folder)


def test_a_start_that_was_overtaken_leaves_the_newer_run_alone(tmp_path: Path) -> None:
    newer: list[Journal] = []
    with pytest.raises(Fenced):
        start(Slow(tmp_path, RECORDS, 2, lambda: newer.append(start(LocalDisk(tmp_path), 2))), 1)
    newer[0].append(Opened(1, 0.0, {}))


def test_a_start_that_was_overtaken_removes_nothing_of_the_newer_run(tmp_path: Path) -> None:
    def overtakes() -> None:
        start(LocalDisk(tmp_path), 2).append(Opened(1, 0.0, {}))

    with pytest.raises(Fenced):
        start(Slow(tmp_path, RECORDS, 3, overtakes), 1)
    assert start(LocalDisk(tmp_path), 3).image.last_opened == 1


def test_of_two_hosts_that_begin_at_once_the_slower_home_joins_the_history_of_the_other(tmp_path: Path) -> None:
    remote, other = tmp_path / "remote", LocalDisk(tmp_path / "other")
    home = LocalDisk(tmp_path / "home")
    start(home, 1)  # killed before it could reach the remote
    start(other, 2, remote).append(Opened(1, 0.0, {}))
    start(other, 3, remote)
    assert start(home, 4, remote).image.last_opened == 1


class Late(LocalDisk):
    """A home where something else happens right before the first file of some folder is created."""

    def __init__(self, root: Path, folder: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(root)
        self.folder, self.meanwhile = folder, [meanwhile]

    def create(self, name: str, content: bytes) -> None:
        if name.startswith(self.folder) and self.meanwhile:
            self.meanwhile.pop()()
        super().create(name, content)


@pytest.mark.parametrize("when", ["while the end is looked for", "right before the first record"])
def test_a_record_that_an_earlier_run_got_in_is_part_of_the_history_that_a_start_joins(tmp_path: Path, when: str) -> None:
    earlier = start(LocalDisk(tmp_path), 1)

    def last_word() -> None:
        with pytest.raises(Fenced):
            earlier.append(Opened(1, 0.0, {}))

    newer = start(Late(tmp_path, RECORDS, last_word) if "first" in when else Slow(tmp_path, RECORDS, 3, last_word), 2)
    assert newer.image.last_opened == 1
    newer.append(Opened(2, 0.0, {}))


def test_a_start_that_finds_its_generation_taken_takes_the_next(tmp_path: Path) -> None:
    other: list[Journal] = []
    later = start(Late(tmp_path, RUNS, lambda: other.append(start(LocalDisk(tmp_path), 2))), 1)
    assert (other[0].generation, later.generation) == (1, 2)
    with pytest.raises(Fenced):
        other[0].append(Opened(1, 0.0, {}))
    later.append(Opened(1, 0.0, {}))


def test_of_those_who_would_follow_one_run_one_does_and_nobody_follows_a_run_that_was_followed(tmp_path: Path) -> None:
    shared, first, second = (LocalDisk(tmp_path / name) for name in ("shared", "first", "second"))
    assert take_generation([shared, first], this_process(0.0)) == 1
    assert take_generation([shared, first], this_process(0.0), follows=1) == 2
    with pytest.raises(Conflict, match="has followed the one of generation 1"):
        take_generation([shared, second], this_process(0.0), follows=1)
    assert set(shared.sizes(RUNS)) == {run_name(1), run_name(2)} and not second.sizes(RUNS)
    assert take_generation([shared, second], this_process(0.0), follows=2) == 3


def test_who_is_a_moment_late_does_not_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = LocalDisk(tmp_path)
    take_generation([shared], this_process(0.0))
    plain = LocalDisk.sizes

    def sizes(self: LocalDisk, folder: str) -> dict[str, int]:
        found = plain(self, folder)
        shared.create(run_name(2), b"of another")
        return found

    monkeypatch.setattr(LocalDisk, "sizes", sizes)
    with pytest.raises(Conflict, match="has followed"):
        take_generation([shared], this_process(0.0), follows=1)
    monkeypatch.undo()
    assert set(shared.sizes(RUNS)) == {run_name(1), run_name(2)}
