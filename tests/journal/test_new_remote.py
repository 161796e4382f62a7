"""A remote that is new to a long history gets what can be read back, and nothing says more than it has."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.duties.upkeep import Upkeep
from nosync.history.home import open as open_home
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Declared, Entry, Opened, Reached, Restored, RolledBack, TakenOver
from nosync.journal.image import fold
from nosync.journal.journal import Journal
from nosync.journal.names import ROLLUPS, TAKEN, rollup_name
from nosync.journal.past import TieredReader
from nosync.journal.rolling import Roller
from nosync.journal.taken import taken_from
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote

MARKS_OF = {"s": lambda slice: [str(slice["number"])]}


def a_remote() -> Objects:
    return open_remote(f"memory://{uuid4().hex}")


def start(home: Path, remote: Objects | None, number: int) -> Journal:
    return Journal(LocalDisk(home, fsync=lambda descriptor: None), remote, Runner(number, "host", "boot", 0.0, f"{number:08x}"))


def compute(journal: Journal, first: int, last: int) -> None:
    for epoch in range(first, last + 1):
        path = f"layers/v/0-f/{epoch}-{epoch + 1}-{journal.run}-0.arrow"
        journal.disk.replace(path, b"x")
        journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
        journal.append(Computed(epoch, (LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", path, 1, 1, ""),), {}, {}))


def grown(home: Path) -> Journal:
    journal = start(home, None, 1)
    journal.append(Declared("shop", 1, {}, {}, {}))
    roller = Roller(journal, journal.disk, None, 8, MARKS_OF)
    for epoch in range(1, 31):
        compute(journal, epoch, epoch)
        roller.step(journal.number)
    return journal


def test_a_torn_newer_rollup_stays_behind(tmp_path: Path) -> None:
    """A crash while rolling up left half of a roll-up whose records are all there: the history is read from the one before."""
    journal = grown(tmp_path / "home")
    whole = max(journal.disk.sizes(ROLLUPS))
    journal.disk.replace(rollup_name(journal.number, 30), (journal.disk.read(whole) or b"")[:-20])
    remote = a_remote()
    again = start(tmp_path / "home", remote, 2)
    assert again.shipped == again.number and list(remote.sizes(ROLLUPS)) == [whole]
    assert read_chain(remote).image().newest == again.image.newest
    assert start(tmp_path / "elsewhere", remote, 3).image.epoch == 30


@pytest.mark.parametrize("damage", ["whole", "torn", "missing"])
def test_what_sources_gave_is_known_there_whatever_became_of_its_summary(tmp_path: Path, damage: str) -> None:
    journal = grown(tmp_path / "home")
    tile = max(journal.disk.sizes(TAKEN))
    if damage == "torn":
        journal.disk.replace(tile, (journal.disk.read(tile) or b"")[:-5])
    if damage == "missing":
        journal.disk.delete(tile)
    remote = a_remote()
    start(tmp_path / "home", remote, 2)
    other = start(tmp_path / "elsewhere", remote, 3)
    taken = taken_from(["s"], TieredReader(other.disk, remote), other.base, other.after(other.base), MARKS_OF)["s"]
    assert taken.latest == {"number": 30}
    assert taken.marks.among([str(number) for number in range(40)]) == {str(number) for number in range(1, 31)}


def tend(journal: Journal) -> Upkeep:
    return Upkeep(journal, journal.disk, journal.remote, {}, None, {}, policy=LogStructured(patience_seconds=0.0))  # type: ignore[arg-type]


def finish(upkeep: Upkeep) -> None:
    while any(duty() for duty in upkeep.duties().values()):
        pass
    upkeep.journal.flush()


def test_status_never_says_more_than_the_run_when_the_remote_is_new(tmp_path: Path) -> None:
    first = start(tmp_path / "home", a_remote(), 1)
    first.append(Declared("shop", 1, {}, {}, {}))
    compute(first, 1, 5)
    finish(tend(first))
    assert open_home(tmp_path / "home").status.safe == {"process": 5, "host": 5, "site": 5}
    upkeep = tend(start(tmp_path / "home", a_remote(), 2))
    said = open_home(tmp_path / "home").status.safe
    assert said["site"] <= upkeep.safe()["site"] == 0
    finish(upkeep)
    assert open_home(tmp_path / "home").status.safe == upkeep.safe() == {"process": 5, "host": 5, "site": 5}


def test_in_status_a_worse_failure_never_has_a_newer_epoch(tmp_path: Path) -> None:
    journal = start(tmp_path / "home", None, 1)
    journal.append(Declared("shop", 1, {}, {}, {}))
    compute(journal, 1, 5)
    journal.append(Reached("site", 4))
    assert open_home(tmp_path / "home").status.safe == {"process": 5, "host": 0, "site": 0}


REMADE = LayerInfo("v", ALL_HASHES, 2, 4, "diffs", "layers/v/0-f/2-4-2.0-0.arrow", 1, 1, "")


ANEW: list[Entry] = [RolledBack(1), Restored((), (REMADE,)), TakenOver(3, (REMADE,), {}, False, {})]


@pytest.mark.parametrize("entry", ANEW, ids=lambda entry: type(entry).__name__)
def test_what_is_made_anew_is_not_on_the_remote_until_a_run_says_so(entry: Entry) -> None:
    known: list[Entry] = [Computed(epoch, (), {}, {}) for epoch in range(1, 4)]
    assert fold([*known, Reached("site", 3), entry]).reached == {"site": 1}
