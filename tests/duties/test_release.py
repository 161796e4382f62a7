"""Releasing: in order, each epoch behind its intent; nothing once another run has taken over."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.duties.release import MOST_EPOCHS, MOST_TOGETHER, Releaser
from nosync.journal.entries import Computed, Declared, Opened, Released, Releasing
from nosync.journal.journal import Journal
from nosync.model.errors import Fenced
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.run import Runner
from nosync.model.safety import Standing
from nosync.model.shards import shard_ranges
from nosync.model.sink import Terms
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote

SAFE = Terms("safe")
PACED = Terms("safe", every=10.0)
TOGETHER = Terms("safe", every=10.0, together=True)


class Flow:
    """A journal with some epochs computed, and a sink that takes what it gets."""

    def __init__(self, home: Path, remote: Objects | None = None, terms: Terms = SAFE, precise: bool = True) -> None:
        self.disk = LocalDisk(home, fsync=lambda descriptor: None)
        self.journal = Journal(self.disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.got: list[int] = []
        self.ranges: list[tuple[int, int]] = []
        self.time = 1_000.0
        self.is_precise = precise
        self.safe = 0
        self.synced: int | None = None
        self.releaser = Releaser(self.journal, {"out": terms}, self, LOG_STRUCTURED, self.standings, lambda: self.time)

    def standings(self) -> list[Standing]:
        host = Standing("host", self.journal.number if self.synced is None else self.synced, self.safe, 0, 0, 0)
        return [host, Standing("site", self.journal.shipped, self.safe, 0, 0, 0)] if self.journal.remote is not None else [host]

    def precise(self, sink: str) -> bool:
        return self.is_precise

    def deliver(self, sink: str, first: int, last: int) -> None:
        self.got.append(last)
        self.ranges.append((first, last))

    def release(self) -> list[tuple[int, int]]:
        """What is delivered before there is nothing to do any more."""
        before = len(self.ranges)
        while self.releaser.step("out"):
            pass
        return self.ranges[before:]

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


def test_a_sink_with_a_pace_gets_what_has_come_since_as_one(tmp_path: Path) -> None:
    flow = Flow(tmp_path, terms=TOGETHER)
    flow.compute(1, 2)
    flow.safe = 2
    assert flow.release() == [(1, 2)]
    flow.compute(3, 7)
    flow.safe = 6
    assert flow.release() == [] and flow.releaser.next_at() == {"out": 1_010.0}
    flow.time = 1_010.0
    assert flow.release() == [(3, 6)]
    flow.safe = 7
    assert flow.release() == []
    flow.releaser.hurry()
    assert flow.release() == [(7, 7)]


def test_a_sink_that_shows_epochs_apart_gets_them_one_by_one_at_its_pace(tmp_path: Path) -> None:
    flow = Flow(tmp_path, terms=PACED)
    flow.compute(1, 3)
    flow.safe = 3
    assert flow.release() == [(1, 1), (2, 2), (3, 3)]
    flow.compute(4, 5)
    flow.safe = 5
    assert flow.release() == []
    flow.time = 1_015.0
    assert flow.release() == [(4, 4), (5, 5)]
    assert flow.releaser.next_at() == {"out": 1_020.0}


def test_a_clock_that_goes_back_holds_no_sink_up(tmp_path: Path) -> None:
    flow = Flow(tmp_path, terms=TOGETHER)
    flow.compute(1, 1)
    flow.safe = 1
    flow.release()
    flow.compute(2, 2)
    flow.safe, flow.time = 2, 5.0
    assert flow.release() == [(2, 2)]


def test_what_goes_as_one_is_meant_so_wherever_the_flow_survives(tmp_path: Path) -> None:
    flow = Flow(tmp_path, terms=TOGETHER)
    flow.compute(1, 2)
    flow.safe = 2
    assert flow.releaser.step("out")
    flow.synced = flow.journal.number - 1
    assert flow.release() == []
    flow.synced = flow.journal.number
    assert flow.release() == [(1, 2)]


@pytest.mark.parametrize("terms", [SAFE, PACED, TOGETHER])
def test_what_was_meant_to_go_as_one_goes_so_again_whatever_the_pace_is_now(tmp_path: Path, terms: Terms) -> None:
    flow = Flow(tmp_path, terms=TOGETHER)
    flow.compute(1, 3)
    flow.safe = 3
    assert flow.release() == [(1, 3)]
    again = Flow(tmp_path, terms=terms)  # that it has been delivered was on no record yet
    again.safe = 2
    assert again.release() == []
    again.safe = 3
    assert again.release() == [(1, 3)]


def test_what_a_run_finds_undelivered_goes_one_by_one(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.compute(1, 3)
    flow.safe = 1
    assert flow.release() == [(1, 1)]
    again = Flow(tmp_path, terms=TOGETHER)
    again.compute(4, 5)
    again.safe = 5
    assert again.release() == [(1, 1), (2, 2), (3, 3), (4, 5)]
    again.time = 1_010.0
    again.compute(6, 7)
    again.safe = 7
    assert again.release() == [(6, 7)]


def test_so_many_epochs_go_as_one_and_no_more(tmp_path: Path) -> None:
    flow = Flow(tmp_path, terms=TOGETHER)
    flow.compute(1, MOST_TOGETHER + 3)
    flow.safe = MOST_TOGETHER + 3
    assert flow.release() == [(1, MOST_TOGETHER), (MOST_TOGETHER + 1, MOST_TOGETHER + 3)]


class Watched(Flow):
    """Of a program that says whose layers the sink's output is in."""

    def __init__(self, home: Path, terms: Terms = SAFE, precise: bool = True) -> None:
        super().__init__(home, None, terms, precise)
        if self.journal.image.declared is None:
            self.journal.append(Declared("shop", 1, {}, {}, {}, {"out": {"trace": "spend/out"}}))
        self.releaser = Releaser(self.journal, {"out": terms}, self, LOG_STRUCTURED, self.standings, lambda: self.time)

    def go(self, *epochs: bool) -> list[tuple[int, int]]:
        """Some epochs more, each of which changes the sink's output or does not; what it gets of them."""
        for changes in epochs:
            epoch = Epoch(self.journal.image.epoch + 1)
            layer = LayerInfo(TraceName("spend/out"), shard_ranges(1)[0], epoch, Epoch(epoch + 1), "diffs", f"{epoch}", 1, 1, "")
            self.journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (layer,) if changes else (), {}, {}))
        self.safe = self.journal.image.epoch
        return self.release()


def test_epochs_that_change_nothing_for_a_sink_are_passed_over_without_a_record(tmp_path: Path) -> None:
    flow = Watched(tmp_path)
    assert flow.go(True, False, False, True) == [(1, 1), (4, 4)]
    number = flow.journal.number
    assert flow.go(False, False) == []
    assert (flow.releaser.delivered["out"], flow.journal.number) == (6, number + 2)
    assert flow.releaser.waiting() == []


def test_nothing_is_passed_over_before_it_is_as_safe_as_the_sink_demands(tmp_path: Path) -> None:
    flow = Watched(tmp_path)
    flow.go(True, False, False)
    flow.safe = 1
    again = Watched(tmp_path)
    again.safe = 2
    assert (again.release(), again.releaser.delivered["out"]) == ([(1, 1)], 2)


def test_the_first_epoch_comes_whatever_it_holds(tmp_path: Path) -> None:
    flow = Watched(tmp_path)
    assert flow.go(False, False, True) == [(1, 1), (3, 3)]
    assert Watched(tmp_path).go(False) == [(3, 3)]  # that was not on record, but that it has begun


def test_a_sink_that_wants_each_epoch_gets_each(tmp_path: Path) -> None:
    flow = Watched(tmp_path, Terms("safe", unchanged=True))
    assert flow.go(True, False, False) == [(1, 1), (2, 2), (3, 3)]


def test_what_is_passed_over_is_held_by_nobody_and_what_is_not_recorded_is(tmp_path: Path) -> None:
    flow = Watched(tmp_path)
    flow.go(True, True)
    assert flow.releaser.held() == {"out": 1}  # the second is noted, and on no record yet
    flow.go(False)
    assert flow.releaser.held() == {"out": 3}


def test_what_was_passed_over_is_on_record_when_the_run_ends(tmp_path: Path) -> None:
    flow = Watched(tmp_path)
    flow.go(True, False, False)
    flow.releaser.note()
    flow.journal.flush()
    assert flow.journal.image.released == {"out": 3}


def test_after_a_crash_the_same_epochs_are_passed_over(tmp_path: Path) -> None:
    flow = Watched(tmp_path, TOGETHER)
    assert flow.go(True, False) == [(1, 2)]
    flow.time += 10
    assert flow.go(False, True, False) == [(4, 5)]
    again = Watched(tmp_path)  # that it has been delivered was on no record yet
    again.safe = 5
    assert again.release() == [(3, 5)]  # as one again, and what it begins with changes nothing


def test_a_tier_is_awaited_by_a_sink_that_has_all_it_may_have_and_not_by_one_that_is_behind(tmp_path: Path) -> None:
    flow = Watched(tmp_path)
    flow.go(True, True)
    assert not flow.releaser.awaits("host")
    flow.safe = 1
    flow.releaser = Releaser(flow.journal, {"out": SAFE}, flow, LOG_STRUCTURED, flow.standings)
    flow.releaser.delivered["out"] = Epoch(1)
    assert flow.releaser.awaits("host") and not flow.releaser.awaits("site")
    flow.releaser.delivered["out"] = Epoch(0)
    assert not flow.releaser.awaits("host")
