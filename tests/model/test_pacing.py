"""Epochs as rare as the time allows in which rows shall be seen, over a simulated flow whose load jumps."""

import random
from collections import deque
from collections.abc import Callable

import pytest

from nosync.model.pacing import LEAST_WEIGHT, Next, Pacer

BYTES = 100  # of a row
ROW_SECONDS = 2e-6  # what each costs
FIXED_SECONDS = 0.1  # what an epoch costs


class Simulated:
    """Rows come at a rate that changes with time, and wait in order; epochs take what they may, and their time."""

    def __init__(self, rows_per_second: Callable[[float], float], seed: int, fixed: float = FIXED_SECONDS) -> None:
        self.rate, self.chance, self.fixed = rows_per_second, random.Random(seed), fixed
        self.now = self.arrived = 0.0
        self.waiting: deque[tuple[float, float]] = deque()  # when they came, how many
        self.seen: list[tuple[float, float]] = []  # when rows came, how long until they were seen
        self.epochs: list[float] = []

    def until(self, end: float, next: Callable[[float], Next], note: Callable[[int, float, float, bool], None]) -> None:
        began = self.now
        while self.now < end:
            due = next(self.now)
            self._arrive(max(self.now, began + due.interval))
            began = self.now
            taken, more = self._take(due.weight), bool(self.waiting)
            weight = sum(rows for _, rows in taken) * BYTES
            if weight:
                took = (self.fixed + weight / BYTES * ROW_SECONDS) * self.chance.uniform(0.9, 1.2)
                self._arrive(self.now + took)
                self.seen += [(came, self.now - came) for came, _ in taken]
                self.epochs.append(began)
                note(round(weight), began, took, more)
            self._arrive(self.now + 0.01)

    def _arrive(self, now: float) -> None:
        while self.arrived + 0.01 <= now:
            self.arrived += 0.01
            self.waiting.append((self.arrived, 0.01 * self.rate(self.arrived)))
        self.now = max(self.now, now)

    def _take(self, weight: int | None) -> list[tuple[float, float]]:
        taken, left = list[tuple[float, float]](), float("inf") if weight is None else weight / BYTES
        while self.waiting and left > 0:
            came, rows = self.waiting.popleft()
            part = min(rows, left)
            taken.append((came, part))
            left -= part
            if rows > part:
                self.waiting.appendleft((came, rows - part))
        return taken


def jumping(now: float) -> float:
    """Ten times as much between the 30th and the 60th second."""
    return 200_000.0 if 30 <= now < 60 else 20_000.0


def paced(aim: float, rate: Callable[[float], float], seed: int, end: float = 90.0, fixed: float = FIXED_SECONDS) -> Simulated:
    flow, pacer = Simulated(rate, seed, fixed), Pacer(aim)
    flow.until(end, pacer.next, pacer.note)
    return flow


def unpaced(rate: Callable[[float], float], seed: int) -> Simulated:
    flow = Simulated(rate, seed)
    flow.until(90.0, lambda _: Next(0.0, None), lambda *_: None)
    return flow


def worst(flow: Simulated, since: float = 0.0, until: float = 1e9) -> float:
    return max(delay for came, delay in flow.seen if since <= came < until)


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_seen_in_time_while_the_load_jumps_by_ten_and_back(seed: int) -> None:
    flow = paced(1.0, jumping, seed)
    delays = sorted(delay for _, delay in flow.seen)
    assert delays[int(0.99 * len(delays))] <= 1.0 and worst(flow) <= 1.5
    assert worst(flow, 0, 30) <= 1.0 and worst(flow, 33, 60) <= 1.0 and worst(flow, 62) <= 1.0


@pytest.mark.parametrize("seed", range(5))
def test_epochs_are_as_rare_as_the_time_allows(seed: int) -> None:
    flow, hasty = paced(1.0, jumping, seed), unpaced(jumping, seed)
    assert len(flow.epochs) < len(hasty.epochs) / 3
    patient = paced(3.0, jumping, seed)
    assert len(patient.epochs) < len(flow.epochs) / 2


@pytest.mark.parametrize("seed", range(5))
def test_a_long_line_is_worked_off_and_then_rows_are_seen_in_time(seed: int) -> None:
    """A hundred seconds of input are there at the start."""
    flow = paced(1.0, lambda now: 5_000_000.0 if now <= 0.4 else 20_000.0, seed, end=60.0)
    assert worst(flow, 15.0) <= 1.0
    assert max(delay for came, delay in flow.seen if came <= 0.4) < 1.5 * (FIXED_SECONDS + 2_000_000 * ROW_SECONDS)


def test_an_aim_that_no_epoch_can_keep_leaves_out_no_pause() -> None:
    pacer = Pacer(0.05)
    for number in range(5):
        pacer.note(1000, 0.1 * number, 0.1, limited=False)
    assert pacer.next(0.5).interval == 0.0 and pacer.next(0.5).weight is not None


def test_before_the_first_epoch_nothing_is_known_and_all_is_taken() -> None:
    assert Pacer(1.0).next(0.0) == Next(0.0, None)


def test_what_an_epoch_may_bring_grows_by_steps_and_never_vanishes() -> None:
    pacer = Pacer(60.0)
    pacer.note(1_000_000, 0.0, 0.1, limited=True)
    assert pacer.next(1e9) == Next(0.0, 4_000_000)
    slow = Pacer(0.1)
    slow.note(1000, 0.0, 30.0, limited=False)
    assert slow.next(30.0).weight == LEAST_WEIGHT
