"""How often epochs follow each other, and how much one may bring, so that rows are seen within a time after they came. Pure.

A row waits for the next epoch, and that epoch takes its time: with epochs every `interval` seconds that take `seconds` each, it is seen
after `interval + seconds` at most. What an epoch takes is about `fixed + each * weight`, as those before it have shown; epochs are as rare
and as large as the aim allows, since the fixed part is what small ones mostly are. Under a load that no interval can keep up with within
the aim, rows have waited already, and epochs grow with their delay: larger ones get more done in the time.
"""

from collections import deque
from dataclasses import dataclass, field

MARGIN = 0.8  # of the aim: epochs vary
RECENT = 12  # epochs that the next one is judged by
FADING = 0.8  # how much less each counts than the one after it
GROWTH = 4.0  # an epoch brings at most so many times what one of those before it brought: nobody knows yet what more would take
LEAST_WEIGHT = 64 << 10


@dataclass(frozen=True, slots=True)
class Cost:
    """What an epoch takes: `fixed` seconds, and `each` for a byte of input."""

    fixed: float
    each: float

    def seconds(self, weight: float) -> float:
        return self.fixed + self.each * weight


@dataclass(frozen=True, slots=True)
class Next:
    """What comes: not before `interval` seconds after the last one began, with input of at most `weight` bytes (None for any)."""

    interval: float
    weight: int | None


@dataclass
class Pacer:
    """`aim`: seconds after which a row shall be seen. `epochs`: weight and seconds of the last ones; `rate`: bytes that come in a second;
    `emptied_at`: when an epoch last took all that there was. Times are of any clock that does not go back.
    """

    aim: float
    epochs: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECENT))
    rate: float = 0.0
    emptied_at: float | None = None
    limited: bool = False

    def note(self, weight: int, began: float, seconds: float, limited: bool) -> None:
        """An epoch was computed. `limited`: there was more than it took."""
        self.epochs.append((float(weight), seconds))
        if not limited and self.emptied_at is not None and not self.limited:
            rate = weight / max(began - self.emptied_at, 1e-3)
            self.rate = rate if rate > self.rate else (self.rate + rate) / 2  # up at once, down by and by
        self.limited = limited
        if not limited or self.emptied_at is None:
            self.emptied_at = began

    def next(self, now: float) -> Next:
        """What to do after the last epoch."""
        if not self.epochs:
            return Next(0.0, None)
        cost, aim = cost_of(list(self.epochs)), MARGIN * self.aim
        interval = max(0.0, (aim - cost.fixed) / (1 + cost.each * self.rate))
        waited = now - self.emptied_at if self.limited and self.emptied_at is not None else 0.0
        in_time = max(aim, waited / 2)  # of a long line, the first half shall not wait for the second
        most = (in_time - cost.fixed) / cost.each if cost.each > 0 else float("inf")
        largest = GROWTH * max(weight for weight, _ in self.epochs)
        weight = max(LEAST_WEIGHT, min(most, largest))
        late = self.limited or cost.seconds(self.rate * interval) >= interval
        return Next(0.0 if late else interval, round(weight))


def cost_of(epochs: list[tuple[float, float]]) -> Cost:
    """The line through what the last epochs took, the newest counting most. Never below what is possible: each part is at least 0."""
    counts = [FADING ** (len(epochs) - 1 - place) for place in range(len(epochs))]
    total = sum(counts)
    weight = sum(count * one for count, (one, _) in zip(counts, epochs)) / total
    seconds = sum(count * one for count, (_, one) in zip(counts, epochs)) / total
    spread = sum(count * (one - weight) ** 2 for count, (one, _) in zip(counts, epochs))
    if not weight:
        return Cost(seconds, 0.0)
    if spread <= (0.1 * weight) ** 2 * total:  # all alike: nobody can tell which part is which
        return Cost(seconds / 2, seconds / 2 / weight)
    each = sum(count * (one - weight) * (took - seconds) for count, (one, took) in zip(counts, epochs)) / spread
    each = min(max(0.0, each), seconds / weight)
    return Cost(max(0.0, seconds - each * weight), each)
