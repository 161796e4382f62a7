"""Trends and the verdict. Pure.

A trend is how much the straight line through the points rises over the time looked at, as percent of their median: the line of the median
slope between points (Theil and Sen), which single stalls do not bend. What processes take is looked at within the last life of the program,
since every kill begins it anew; what is on disks over all of it. The first tenth does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from bench.soak.sampling import Sample

Points = Sequence[tuple[float, float]]
WARM_UP = 0.1
MOST_POINTS = 300
MOST_TREND = 5.0
MOST_FILES = 50
MOST_AMPLIFICATION = 3.0
LONGEST_WARM_UP_SECONDS = 180.0


@dataclass(frozen=True)
class Verdict:
    """`figure` as it was found, against the most that it may be; without a bound it is for information."""

    name: str
    figure: float
    most: float | None
    said: str

    @property
    def reached(self) -> bool:
        return self.most is None or self.figure <= self.most


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """Medians of neighbours, where there are many points."""
    size = -(-len(points) // most) if points else 1
    groups = [points[first : first + size] for first in range(0, len(points), size)]
    return [(statistics.median(at for at, _ in group), statistics.median(value for _, value in group)) for group in groups]


def trend(points: Points) -> float:
    """Percent of the median by which the line rises; 0 for less than three points."""
    few = thinned(points)
    if len(few) < 3 or not (middle := statistics.median(value for _, value in few)):
        return 0.0
    slope = statistics.median((later - value) / (then - at) for (at, value), (then, later) in combinations(few, 2) if then > at)
    return 100 * slope * (few[-1][0] - few[0][0]) / middle


def warm(points: Points) -> Points:
    """Without the first tenth of the time."""
    if not points:
        return points
    begin = points[0][0] + WARM_UP * (points[-1][0] - points[0][0])
    return [point for point in points if point[0] >= begin]


def last_life(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.life == samples[-1].life]


def verdicts(samples: Sequence[Sample], epochs: Points, heap: Points) -> list[Verdict]:
    """`epochs`: when each was done, and its milliseconds; `heap`: what was live in the JVM's."""
    life, settled = last_life(samples), [sample for sample in samples if sample.at >= warm([(one.at, 0) for one in samples])[0][0]]
    begun = life[0].at
    found = [_rising("epoch time", warm(epochs), "ms")]
    found += [_rising("epoch time, last life", warm([point for point in epochs if point[0] >= begun]), "ms", bound=None)]
    found += [
        _rising(name, warm([(sample.at, value(sample)) for sample in life]), unit)
        for name, unit, value in (
            ("memory (PSS)", "MiB", lambda sample: sample.pss / 2**20),
            ("of it Python's", "MiB", lambda sample: sample.python / 2**20),
            ("threads", "", lambda sample: sample.threads),
            ("file handles", "", lambda sample: sample.handles),
            ("mapped layers", "", lambda sample: sample.mapped),
        )
    ]
    found.append(_rising("JVM heap, live", warm([(at, value / 2**20) for at, value in heap if at >= begun]), "MiB"))
    for where in ("home", "remote"):
        points = [(sample.at, sum(size for _, size in getattr(sample, where).values()) / 2**20) for sample in settled]
        found.append(_rising(f"bytes, {where}", points, "MiB", bound=None))
        counts = [(sample.at, sum(count for count, _ in getattr(sample, where).values())) for sample in settled]
        found.append(_rising(f"files, {where}", counts, "", bound=None))
    worst = max(settled, key=over)
    said = f"{_home(worst) / 2**20:.1f} MiB; newest {worst.newest / 2**20:.1f}, named by the ladder {worst.named / 2**20:.1f}"
    found.append(Verdict("bytes beyond what the ladder names / newest state", over(worst), MOST_AMPLIFICATION, said))
    fullest = max(settled, key=lambda sample: sample.most_files)
    found.append(Verdict("files in a trace", fullest.most_files, MOST_FILES, fullest.most_files_of))
    return found


def over(sample: Sample) -> float:
    return (_home(sample) - sample.named) / sample.newest if sample.newest else 0.0


def _home(sample: Sample) -> int:
    return sum(size for _, size in sample.home.values())


def _rising(name: str, points: Points, unit: str, bound: float | None = MOST_TREND) -> Verdict:
    values = [value for _, value in points]
    said = f"{min(values):,.0f} - {statistics.median(values):,.0f} - {max(values):,.0f} {unit}" if values else "nothing seen"
    return Verdict(f"{name}: trend, %", trend(points), bound, said.strip())
