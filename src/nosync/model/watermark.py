"""Watermarks: how far event time has come. Pure.

The newest event time that a source has brought, less the delay that its rows may have, is its *watermark*. What was seen in an epoch counts
from the next epoch on: the watermark of an epoch is a function of the epochs before it, whenever and wherever the epoch is computed. Times
are microseconds since 1970.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nosync.model.duration import in_words
from nosync.model.identifiers import Epoch

Seen = Mapping[str, int]  # the newest event time so far, by source
History = Callable[[Epoch], Seen]  # what was seen before an epoch



def nothing_seen(epoch: Epoch) -> Seen:
    """The history of a flow without event time."""
    return {}


def newest(before: Seen, found: Seen) -> dict[str, int]:
    """What has been seen after an epoch that found this. Never falls."""
    return {name: max(before.get(name, time), found.get(name, time)) for name, time in {**before, **found}.items()}


@dataclass(frozen=True, slots=True)
class EventClock:
    """The event time that an operator goes by: delays, by source, of all that feeds it.

    `lag`: how many epochs it is behind. What is released when a window closes reaches the operators above in the same epoch, and must not
    be late there.
    """

    delays: tuple[tuple[str, int], ...]
    lag: int = 0

    def watermark(self, epoch: Epoch, seen: History) -> int | None:
        """The lowest of the sources; None until each of them has brought a time."""
        found = seen(epoch - self.lag)
        if not self.delays or any(name not in found for name, _ in self.delays):
            return None
        return min(found[name] - delay for name, delay in self.delays)


@dataclass(frozen=True, slots=True)
class Moment:
    """An epoch with what was seen before it: all that an answer may depend on besides rows."""

    epoch: Epoch
    seen: History = nothing_seen

    def watermark(self, clock: EventClock) -> int | None:
        return clock.watermark(self.epoch, self.seen)

    def watermark_before(self, clock: EventClock) -> int | None:
        """That of the epoch before."""
        return clock.watermark(self.epoch - 1, self.seen) if self.epoch > 1 else None


@dataclass(frozen=True, slots=True)
class Expiry:
    """When rows of a trace can no longer matter: once the time in `column` (the end, where it is a window) is `slack` behind the watermark.

    `chained`: the windows are those of single rows, and a row matters as long as the session that it is part of does. `time` is what
    people call the time.
    """

    column: str
    clock: EventClock
    slack: int = 0
    chained: bool = False
    time: str = ""

    def until(self, epoch: Epoch, seen: History) -> int | None:
        """Rows that end by then are of no use to this epoch or any after it."""
        watermark = self.clock.watermark(epoch, seen)
        return None if watermark is None else watermark - self.slack

    @property
    def words(self) -> str:
        """How long rows are kept."""
        return f"until the watermark {f'is {in_words(self.slack)} past' if self.slack else 'has passed'} {self.time}"
