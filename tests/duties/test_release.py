"""Releasing: in order, each epoch behind its intent; nothing once another run has taken over."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.duties.release import MOST_EPOCHS, Releaser
from nosync.journal.entries import Computed, Opened, Released, Releasing
from nosync.journal.journal import Journal
from nosync.model.errors import Fenced
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.run import Runner
from nosync.model.safety import Release, Standing
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote


class Flow:
    """A journal with some epochs computed, and a sink that takes what it gets."""

    def __init__(self, home: Path, remote: Objects | None = None, release: Release = "safe", precise: bool = True) -> None:
        self.disk = LocalDisk(home, fsync=lambda descriptor: None)
        self.journal = Journal(self.disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.got: list[int] = []
        self.is_precise = precise
        self.safe = 0
        self.synced: int | None = None
        self.releaser = Releaser(self.journal, {"out": release}, self, LOG_STRUCTURED, self.standings)

    def standings(self) -> list[Standing]:
        host = Standing("host", self.journal.number if self.synced is None else self.synced, self.safe, 0, 0, 0)
        return [host, Standing("site", self.journal.shipped, self.safe, 0, 0, 0)] if self.journal.remote is not None else [host]

    def precise(self, sink: str) -> bool:
        return self.is_precise

    def deliver(self, sink: str, epoch: int) -> None:
        self.got.append(epoch)

    def compute(self, first: int, last: int) -> None:
        for epoch in range(first, last + 1):
            self.journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (), {}, {}))

    def recorded(self, kind: type) -> list[int]:
        return [entry.epoch for record in self.journal.after(0) for entry in record.entries if isinstance(entry, kind)]


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return Flow(tmp_path)


def test_epochs_come_in_order_behind_their_intent(flow: Flow) -> None:
    flow.compute(1, 3)
    flow.safe = 2
    assert flow.releaser.step("out")
    assert (flow.got, flow.recorded(Releasing)) == ([], [2])
    while flow.releaser.step("out"):
        pass
    flow.journal.flush()
    assert (flow.got, flow.recorded(Releasing), flow.recorded(Released)) == ([1, 2], [2], [2])
    flow.safe = 3
    while flow.releaser.step("out"):
        pass
    assert (flow.got, flow.recorded(Releasing)) == ([1, 2, 3], [2, 3])


def test_where_nothing_is_due_nothing_is_intended(flow: Flow) -> None:
    assert not flow.releaser.step("out")
    flow.compute(1, 1)
    assert not flow.releaser.step("out")
    assert not flow.recorded(Releasing)


def test_an_epoch_counts_as_released_when_the_last_of_its_intent_is_delivered(flow: Flow) -> None:
    flow.compute(1, 2)
    flow.safe = 2
    flow.releaser.step("out")
    flow.releaser.step("out")
    flow.journal.flush()
    assert (flow.got, flow.recorded(Released)) == ([1], [])


def test_a_sink_that_would_show_a_repetition_gets_one_epoch_at_a_time(tmp_path: Path) -> None:
    flow = Flow(tmp_path, precise=False)
    flow.compute(1, 2)
    flow.safe = 2
    while flow.releaser.step("out"):
        pass
    assert (flow.got, flow.recorded(Releasing)) == ([1, 2], [1, 2])


def test_an_intent_is_for_a_bounded_number_of_epochs(flow: Flow) -> None:
    flow.compute(1, MOST_EPOCHS + 1)
    flow.safe = MOST_EPOCHS + 1
    flow.releaser.step("out")
    assert flow.recorded(Releasing) == [MOST_EPOCHS]


def test_with_a_remote_the_intent_must_be_there_first(tmp_path: Path) -> None:
    flow = Flow(tmp_path, open_remote(f"memory://{uuid4().hex}"))
    flow.compute(1, 1)
    flow.journal.ship()
    flow.safe = 1
    assert flow.releaser.step("out")
    assert not flow.releaser.step("out")
    assert not flow.got
    flow.journal.ship()
    assert flow.releaser.step("out")
    assert flow.got == [1]


def test_an_intent_need_not_be_synced(flow: Flow) -> None:
    flow.compute(1, 1)
    flow.safe = 1
    flow.releaser.step("out")
    flow.synced = flow.journal.number - 1
    assert flow.releaser.step("out")
    assert flow.got == [1]


def test_a_run_that_was_overtaken_delivers_nothing(flow: Flow) -> None:
    flow.compute(1, 1)
    flow.safe = 1
    flow.releaser.step("out")
    Journal(flow.disk, None, Runner(2, "host", "boot", 0.0, "00000002"))
    with pytest.raises(Fenced):
        flow.releaser.step("out")
    assert not flow.got


def test_a_new_run_goes_on_behind_what_was_released(flow: Flow, tmp_path: Path) -> None:
    flow.compute(1, 2)
    flow.safe = 1
    while flow.releaser.step("out"):
        pass
    flow.journal.flush()
    again = Flow(tmp_path)
    again.safe = 2
    while again.releaser.step("out"):
        pass
    assert (flow.got, again.got) == ([1], [2])
