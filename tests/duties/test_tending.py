"""What runs behind the stream comes to rest before a run ends."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nosync.duties.tending import Tending
from nosync.duties.upkeep import Upkeep
from nosync.journal.entries import Computed, Opened
from nosync.journal.journal import Journal, image_of
from nosync.model.errors import Unavailable
from nosync.model.run import this_process
from nosync.model.sink import Terms
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from tests.crash.waiting import until


class Outlet:
    """Takes everything, and remembers it."""

    def __init__(self) -> None:
        self.delivered: list[int] = []

    def precise(self, sink: str) -> bool:
        return True

    def deliver(self, sink: str, first: int, last: int) -> None:
        self.delivered.append(last)


class Flow:
    """A journal of some epochs, and its tending."""

    def __init__(self, folder: Path, epochs: range) -> None:
        self.disk, self.remote, self.outlet = LocalDisk(folder / "home"), open_remote(f"file://{folder}/remote"), Outlet()
        self.journal = Journal(self.disk, self.remote, this_process(0.0))
        for epoch in epochs:
            self.journal.append(Opened(epoch, 0.0, {}))
            self.journal.append(Computed(epoch, (), {}, {}))
        upkeep = Upkeep(self.journal, self.disk, self.remote, {"out": Terms("safe")}, self.outlet, {})
        self.tending = Tending(self.journal, upkeep, lambda error: None)

    def end(self) -> None:
        assert self.tending.drain(60.0)
        self.tending.stop()


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Flow]:
    flow = Flow(tmp_path, range(1, 4))
    flow.end()
    yield flow


def test_what_a_sink_has_is_recorded_before_a_run_ends(ended: Flow) -> None:
    assert ended.outlet.delivered == [1, 2, 3]
    assert image_of(ended.disk).released == {"out": 3}


def test_the_remote_knows_it_too(ended: Flow) -> None:
    assert image_of(ended.remote).released == {"out": 3}


def test_after_a_clean_end_nothing_is_delivered_again(ended: Flow, tmp_path: Path) -> None:
    again = Flow(tmp_path, range(4, 5))
    again.end()
    assert again.outlet.delivered == [4]


class Uneven:
    """One sink is down, one hangs, one works."""

    def __init__(self) -> None:
        self.hanging, self.delivered, self.enough = threading.Event(), list[int](), threading.Event()
        self.hangs = threading.Event()

    def precise(self, sink: str) -> bool:
        return True

    def deliver(self, sink: str, first: int, last: int) -> None:
        if sink == "down":
            raise Unavailable("the sink is down")
        if sink == "hangs":
            self.hangs.set()
            self.hanging.wait(60)
        if sink == "works":
            self.delivered.append(last)
            if last == 3:
                self.enough.set()


@pytest.fixture
def uneven(tmp_path: Path) -> Iterator[tuple[Uneven, Tending]]:
    outlet, disk = Uneven(), LocalDisk(tmp_path / "home")
    journal = Journal(disk, None, this_process(0.0))
    for epoch in range(1, 4):
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (), {}, {}))
    upkeep = Upkeep(journal, disk, None, dict.fromkeys(("down", "hangs", "works"), Terms("computed")), outlet, {})
    tending = Tending(journal, upkeep, lambda error: None)
    yield outlet, tending
    outlet.hanging.set()
    tending.stop()


def test_a_sink_gets_its_epochs_whatever_those_before_it_do(uneven: tuple[Uneven, Tending]) -> None:
    outlet, tending = uneven
    assert outlet.enough.wait(60) and outlet.delivered == [1, 2, 3]
    until(lambda: tending.upkeep.troubles.problem("sink down"))
    troubles = {trouble.duty: trouble.message for trouble in tending.upkeep.troubles.all()}
    assert troubles == {"sink down": "the sink is down"}


def test_stopping_does_not_wait_for_what_hangs(uneven: tuple[Uneven, Tending]) -> None:
    outlet, tending = uneven
    assert outlet.enough.wait(60) and outlet.hangs.wait(60)
    tending.stop(seconds=0.1)
    left = [thread.name for thread in tending.threads if thread.is_alive()]
    assert "nosync sink hangs" in left
