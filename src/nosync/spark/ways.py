"""Which way an epoch takes: narrow, in this process, or wide, as a job of many tasks. Pure, from what was measured of the epochs before.

What comes is known from the input's weight, what operators make of it from the epochs before: an epoch's *load* is the most rows that
come to any one operator. Few rows are narrow and very many are wide, whatever was measured. Between the two the way that rows of about
that number took less time on is taken; one that has not been tried is, where the other one turns out slow.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch

Way = Literal["narrow", "wide"]
SETTING = "spark.nosync.way"
SURELY_NARROW, USUALLY_NARROW, SURELY_WIDE = 5_000, 150_000, 300_000
USUALLY_NARROW_DIRECT = 10_000  # where tasks read their input themselves, and aggregate it as they read
BYTES_OF_A_ROW = 100  # of a slice whose rows nobody has counted
TRIED = 3  # epochs after which a way is known: the first ones make plans
SLOW_MILLIS = 1_000.0  # what takes less is not worth a trial of the other way
KEPT = 8


@dataclass
class Ways:
    """The choice for each epoch. `pinned`: what a test or a measurement wants."""

    pinned: str = ""
    growth: float = 1.0  # how many rows come to the busiest operator for each row of input
    times: dict[tuple[Way, int], deque[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.pinned not in ("", "narrow", "wide", "mixed"):
            raise Invalid(f'{SETTING} is "{self.pinned}"', hint='It is "narrow", "wide" or "mixed" (in turn). Unset, each epoch chooses.')

    def choose(self, epoch: Epoch, rows: int | None, direct: Callable[[], bool] = lambda: False) -> Way:
        """For an epoch with so many rows of input; None where nobody knows. `direct`: whether a wide one's tasks may read it themselves,
        asked only where it matters.
        """
        if self.pinned:
            narrow = self.pinned == "narrow" or (self.pinned == "mixed" and epoch % 2 == 1)
            return "narrow" if narrow else "wide"
        if rows is None or rows * self.growth > SURELY_WIDE:
            return "wide"
        load = rows * self.growth
        if load <= SURELY_NARROW:
            return "narrow"
        usual = load <= USUALLY_NARROW_DIRECT or (load <= USUALLY_NARROW and not direct())
        return self._measured(load, "narrow" if usual else "wide")

    def _measured(self, load: float, usual: Way) -> Way:
        other: Way = "wide" if usual == "narrow" else "narrow"
        known, tried = (self.times.get((way, _size(load)), ()) for way in (usual, other))
        if len(known) < TRIED or (len(tried) < TRIED and min(known) < SLOW_MILLIS):
            return usual
        if len(tried) < TRIED:
            return other
        return usual if min(known) <= min(tried) else other

    def note(self, way: Way, rows: int, busiest: int, millis: float) -> None:
        """What an epoch was: rows of input, the most that came to any one operator, and how long it took."""
        if rows:
            seen = max(1.0, busiest / rows)
            self.growth = max(seen, (self.growth + seen) / 2)  # up at once, down by and by
            self.times.setdefault((way, _size(max(rows, busiest))), deque(maxlen=KEPT)).append(millis)


def _size(load: float) -> int:
    """Loads of about the same size: each is twice the one before."""
    return int(load).bit_length()


def rows_of(counts: Iterable[int | None], weights: Iterable[int]) -> int | None:
    """About how many rows some slices bring."""
    total = 0
    for count, weight in zip(counts, weights, strict=True):
        if count is None and not weight:
            return None
        total += weight // BYTES_OF_A_ROW if count is None else count
    return total
