"""Ladders: how fine history is kept at which age. Pure.

A ladder has *rungs*, from the youngest to the oldest: up to an age, every epoch, or one in so many seconds (the last of each such stretch
of time). Behind the last rung nothing is kept but what is held. As text, which is also what the journal records (`said`):

    all                                                           every epoch, for ever
    100 epochs                                                    the last 100
    7 days                                                        every epoch, for seven days
    10 minutes: every epoch, 1 day: 1 minute, 30 days: 1 hour     a ladder

A stretch of time counts as old once all of it is, and a count moves by tenths: so the answer changes once a minute or so, not with every
epoch, and a little more is kept than was asked for, never less.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nosync.model.duration import microseconds
from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch
from nosync.model.retention import FIRST, Hold, Kept, boundary

Keep = str | int | Mapping[str, str]

EVERY = "every epoch"
LOOKED_AT = 8  # ends of stretches of time, of which the first mostly decides
PARTS = 10  # a rung that keeps every epoch, and a count, give up a tenth at a time
HINT = (
    'Pass "all", a number of epochs, a duration ("7 days"), or a ladder: {"10 minutes": "every epoch", "1 day": "1 minute"}, '
    "from the youngest to the oldest."
)


class Rung(NamedTuple):
    """Up to this age one epoch in `step` microseconds is kept; each one with 0."""

    age: int
    step: int


@dataclass(frozen=True, slots=True)
class Ladder:
    """A rule of retention. `said` is its text; `rungs` ascend by age; `count` epochs are kept where there are no rungs, all of them where
    that is 0 too.
    """

    said: str
    rungs: tuple[Rung, ...] = ()
    count: int = 0

    def kept(self, newest: Epoch, times: Mapping[Epoch, float], now: float, holds: Sequence[Hold]) -> Kept:
        """Of the epochs whose times are given; between two of them, times ascend. The newest is always kept; so is what is held."""
        since = min([self._since(newest, times, now), newest, *(hold.first for hold in holds if hold.last is None)])
        older = sorted(epoch for epoch in times if epoch < since)
        among = {*self._chosen(older, times, now), *_held(older, holds)}
        return Kept(max(FIRST, Epoch(since)), tuple(sorted(among)))

    def boundary(self, newest: Epoch, holds: Sequence[Hold]) -> Epoch:
        """Input of ours goes once nothing holds it: state does not depend on it any more."""
        return Epoch(boundary(newest, holds))

    def next_loss(self, newest: Epoch, times: Mapping[Epoch, float], now: float, holds: Sequence[Hold] = ()) -> tuple[float, int] | None:
        """When the next epochs will have become too old, if no other comes, and how many those are; None where age does not decide."""
        steps = [(rung.age, after.step or rung.step or max(1, rung.age // PARTS)) for rung, after in _with_next(self.rungs)]
        ends = {((_stretch(at, step) + 1) * step + age) / 1e6 for at in times.values() for age, step in steps}
        kept = self.kept(newest, times, now, holds)
        known = [epoch for epoch in times if epoch in kept]
        for at in sorted(end for end in ends if end > now)[:LOOKED_AT]:
            later = self.kept(newest, times, at, holds)
            if gone := sum(epoch not in later for epoch in known):
                return at, gone
        return None

    def _since(self, newest: Epoch, times: Mapping[Epoch, float], now: float) -> Epoch:
        """From here on every epoch is kept."""
        if self.count:
            tenth = max(1, self.count // PARTS)
            return Epoch((newest - self.count + 1) // tenth * tenth)
        if not self.rungs:
            return FIRST
        first, *rest = self.rungs
        stretch = (rest[0].step if rest else 0) or max(1, first.age // PARTS)
        if first.step:
            return newest
        known = sorted(times)
        young = next((index for index, epoch in enumerate(known) if not _is_old(times[epoch], stretch, first.age, now)), len(known))
        return Epoch(known[young - 1] + 1) if young else FIRST

    def _chosen(self, older: Sequence[Epoch], times: Mapping[Epoch, float], now: float) -> Iterable[Epoch]:
        """The last epoch of each stretch of time, as long as the rung is that the stretch is on."""
        last = {(rung, _stretch(times[epoch], rung.step)): epoch for epoch in older if (rung := self._rung(times[epoch], now))}
        return last.values()

    def _rung(self, at: float, now: float) -> Rung | None:
        """The rung that an epoch of this time is on; None for none, and for those that keep every epoch, which `since` says."""
        for number, rung in enumerate(self.rungs):
            after = self.rungs[number + 1].step if number + 1 < len(self.rungs) else 0
            if not _is_old(at, after or rung.step or max(1, rung.age // PARTS), rung.age, now):
                return rung if rung.step else Rung(rung.age, 1)
        return None


def _with_next(rungs: Sequence[Rung]) -> Iterable[tuple[Rung, Rung]]:
    return zip(rungs, (*rungs[1:], Rung(0, 0)), strict=False)


def _stretch(at: float, step: int) -> int:
    return round(at * 1e6) // step


def _is_old(at: float, stretch: int, age: int, now: float) -> bool:
    """Whether the whole stretch of time that a time is in is older than that."""
    return (_stretch(at, stretch) + 1) * stretch <= round(now * 1e6) - age


def _held(older: Sequence[Epoch], holds: Iterable[Hold]) -> Iterable[Epoch]:
    for hold in holds:
        if hold.last is not None:
            yield from older[bisect_left(older, hold.first) : bisect_left(older, hold.last + 1)]


def ladder_of(keep: Keep) -> Ladder:
    """Reads what was passed as `keep=`, or the text of a ladder."""
    if isinstance(keep, Mapping):
        return _ladder([(str(age), str(step)) for age, step in keep.items()])
    if isinstance(keep, int) and not isinstance(keep, bool):
        return _count(keep)
    text = " ".join(str(keep).split())
    if text == "all":
        return ALL
    if ":" in text:
        return _ladder([(age.strip(), step.strip()) for age, _, step in (part.partition(":") for part in text.split(","))])
    number, _, unit = text.partition(" ")
    if number.isdecimal() and unit in ("", "epoch", "epochs"):
        return _count(int(number))
    return Ladder(text, (Rung(_duration(text), 0),))


def _count(count: int) -> Ladder:
    if count < 1:
        raise Invalid(f"keep={count} would keep nothing", hint="Pass 1 or more: the newest state is kept in any case.")
    return Ladder(f"{count} epochs", count=count)


def _ladder(parts: Sequence[tuple[str, str]]) -> Ladder:
    rungs = tuple(Rung(_duration(age), 0 if step == EVERY else _duration(step)) for age, step in parts)
    said = ", ".join(f"{age}: {step}" for age, step in parts)
    ascending = all(one.age < other.age and one.step < other.step for one, other in itertools.pairwise(rungs))
    if not rungs or not ascending:
        raise Invalid(f'keep="{said}" is no ladder: ages and steps must grow from rung to rung', HINT)
    return Ladder(said, rungs)


def _duration(text: str) -> int:
    found = microseconds(text, "how long to keep epochs")
    if found < 1:
        raise Invalid(f'"{text}" would keep nothing', HINT)
    return found


ALL = Ladder("all")
DEFAULT = ladder_of({"10 minutes": EVERY, "1 day": "1 minute", "30 days": "1 hour"})
