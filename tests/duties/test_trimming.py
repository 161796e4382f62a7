"""Input that nobody will ask for again is let go of, all of it, however late."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nosync.duties.trimming import BATCH, Trimmer
from nosync.journal.entries import Computed, Opened, Released, RolledBack
from nosync.journal.journal import Journal
from nosync.journal.rolling import Roller
from nosync.model.retention import boundary, recovery_holds, release_holds
from nosync.model.run import Runner
from nosync.model.safety import Standing
from nosync.store.disk import LocalDisk

EPOCHS = 100


class Flow:
    """A flow of many epochs whose journal is rolled up every few records. `sink`: up to which epoch its sink has come."""

    def __init__(self, home: Path, number: int = 1) -> None:
        self.journal = Journal(LocalDisk(home, fsync=lambda descriptor: None), None, Runner(number, "host", "boot", 0.0, f"{number:08x}"))
        self.roller = Roller(self.journal, self.journal.disk, None, 10)
        self.got: list[int] = []
        self.trimmer = Trimmer(self.journal, {"s": self.trim}, self.may_go, self.standings)

    def standings(self) -> list[Standing]:
        return [Standing("host", self.journal.number, self.journal.image.epoch, 0, 0, 0)]

    def may_go(self, newest: int) -> int:
        return boundary(newest, recovery_holds(self.standings()) + release_holds({"out": self.journal.image.released.get("out", 0)}))

    def trim(self, slice: dict[str, Any]) -> None:
        self.got.append(slice["number"])

    def compute(self, first: int, last: int, sink: bool) -> None:
        for epoch in range(first, last + 1):
            file = f"input/s/{epoch}"
            self.journal.disk.replace(file, b"rows")
            self.journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}, {file: ""}))
            self.journal.append(Computed(epoch, (), {}, {}))
            if sink:
                self.journal.append(Released("out", epoch))
            self.tidy()

    def tidy(self) -> None:
        self.roller.step(self.journal.number)
        self.trimmer.step()

    def drain(self) -> None:
        while self.trimmer.step():
            pass

    def left(self) -> list[int]:
        return sorted(int(name.rpartition("/")[2]) for name in self.journal.disk.sizes("input"))


def test_everything_that_may_be_trimmed_is_although_it_was_rolled_up(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.compute(1, EPOCHS, sink=True)
    flow.drain()
    done = flow.journal.image.trimmed["s"]
    assert done > EPOCHS - BATCH
    assert flow.got == list(range(1, done + 1))
    assert flow.left() == list(range(done + 1, EPOCHS + 1))


@pytest.mark.parametrize("again", [False, True], ids=["the same run", "a new run"])
def test_what_a_sink_held_back_is_trimmed_once_it_has_it(tmp_path: Path, again: bool) -> None:
    flow = Flow(tmp_path)
    flow.compute(1, EPOCHS, sink=False)
    assert not flow.got and len(flow.journal.image.opened) < EPOCHS / 2
    if again:
        flow = Flow(tmp_path, 2)
    flow.journal.append(Released("out", EPOCHS))
    flow.drain()
    assert (flow.got, flow.left()) == (list(range(1, EPOCHS + 1)), [])


def test_a_new_run_goes_on_where_trimming_stopped(tmp_path: Path) -> None:
    """The boundary is recorded, and the run ends before everything behind it is deleted."""
    flow = Flow(tmp_path)
    flow.compute(1, EPOCHS, sink=True)
    flow.drain()
    before = flow.journal.image.trimmed["s"]
    flow.compute(EPOCHS + 1, EPOCHS + BATCH - (EPOCHS - before), sink=True)
    while flow.journal.image.trimmed["s"] == before:
        flow.trimmer.step()
    again = Flow(tmp_path, 2)
    again.drain()
    assert again.got[0] == before + 1 and again.left() == list(range(again.got[-1] + 1, again.journal.image.epoch + 1))


def test_a_restart_of_the_host_does_not_bring_back_what_was_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow(tmp_path)
    synced: list[list[int]] = []  # what was left whenever the folder of the input was synced
    sync = flow.journal.disk.sync_folders

    def syncing(names: Iterable[str]) -> None:
        names = list(names)
        if any(name.startswith("input/s/") for name in names):
            synced.append(flow.left())
        sync(names)

    monkeypatch.setattr(flow.journal.disk, "sync_folders", syncing)
    flow.compute(1, EPOCHS, sink=True)
    flow.drain()
    assert min(synced[-1]) == min(flow.left()) > 1


def test_of_an_epoch_that_was_opened_twice_the_newer_input_is_let_go(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.compute(1, 9, sink=False)
    flow.journal.append(RolledBack(5))
    for epoch in range(6, EPOCHS + 1):
        flow.journal.append(Opened(epoch, 0.0, {"s": {"number": 1000 + epoch}}))
        flow.journal.append(Computed(epoch, (), {}, {}))
        flow.roller.step(flow.journal.number)
    flow.journal.append(Released("out", EPOCHS))
    flow.drain()
    assert flow.got == [*range(1, 6), *range(1006, 1001 + EPOCHS)]


def test_nothing_is_let_go_of_before_the_boundary_is_on_every_tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow(tmp_path)
    flow.compute(1, BATCH - 1, sink=True)
    flow.journal.append(Opened(BATCH, 0.0, {"s": {"number": BATCH}}), Computed(BATCH, (), {}, {}), Released("out", BATCH))
    assert flow.trimmer.step()
    number = flow.journal.number
    with monkeypatch.context() as behind:
        behind.setattr(flow.trimmer, "standings", lambda: [Standing("host", number - 1, BATCH, 0, 0, 0)])
        assert not flow.trimmer.step()
    assert not flow.got
    assert flow.trimmer.step()
    assert flow.got == list(range(1, BATCH + 1))


def test_input_of_another_source_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Flow(tmp_path)
    monkeypatch.setattr("nosync.duties.trimming.rolled_openings_of", None)  # what is at hand is not read back
    for epoch in range(1, BATCH + 1):
        files = {f"input/s/{epoch}": "", f"input/t/{epoch}": "", f"input/s2/{epoch}": ""}
        for file in files:
            flow.journal.disk.replace(file, b"rows")
        flow.journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}, "t": {}, "s2": {}}, files), Computed(epoch, (), {}, {}))
    flow.journal.append(Released("out", BATCH))
    flow.drain()
    assert flow.got == list(range(1, BATCH + 1))
    assert {name.split("/")[1] for name in flow.journal.disk.sizes("input")} == {"t", "s2"}
