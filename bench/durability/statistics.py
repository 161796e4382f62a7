"""Ratios of lanes that took turns, with an interval. Pure."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """A median over pairs of turns, and the middle 95 % of what resampling those pairs gives."""

    value: float
    low: float
    high: float


def paired(subject: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]], skip: int) -> Ratio:
    """The median epoch of each turn divided by that of the baseline's turn in the same round; the first `skip` rounds are warm-up."""
    pairs = [statistics.median(one) / statistics.median(other) for one, other in zip(subject[skip:], baseline[skip:], strict=False)]
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(pairs, k=len(pairs))) for _ in range(2000))
    return Ratio(statistics.median(pairs), medians[50], medians[-51])


def tail(turns: Sequence[Sequence[float]], skip: int, share: float = 0.95) -> float:
    """Seconds that this share of the epochs does not exceed."""
    times = sorted(seconds for turn in turns[skip:] for seconds in turn)
    return times[min(len(times) - 1, int(share * len(times)))]


def middle(turns: Sequence[Sequence[float]], skip: int) -> float:
    return statistics.median(seconds for turn in turns[skip:] for seconds in turn)
