"""From runs to figures: rates, medians, tails, ratios and their spread. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.cases import TARGETS, Target
from bench.measure import Measurement


@dataclass(frozen=True)
class Verdict:
    """A target, what came out (median over the repetitions), its spread, and whether it was reached. None: it could not be measured."""

    target: Target
    value: float | None
    low: float | None
    high: float | None
    reached: bool | None


def steady(run: Measurement, skip: int) -> list[tuple[int, float]]:
    """The epochs that count: those after the warm-up; all but the first if there are hardly any more."""
    return run.epochs[skip:] if len(run.epochs) > skip + 1 else run.epochs[1:]


def throughput(run: Measurement, skip: int) -> float:
    """Rows a second over the steady epochs."""
    counted = steady(run, skip)
    return 1000.0 * sum(rows for rows, _ in counted) / sum(ms for _, ms in counted)


def median(run: Measurement, skip: int) -> float:
    """Milliseconds of the middle epoch."""
    return statistics.median(ms for _, ms in steady(run, skip))


def percentile(run: Measurement, skip: int, share: float = 0.95) -> float:
    """Milliseconds that this share of the epochs does not exceed."""
    times = sorted(ms for _, ms in steady(run, skip))
    return times[min(len(times) - 1, int(share * len(times)))]


def tail(run: Measurement, skip: int) -> float:
    """How far the slow epochs lie above the middle one."""
    return percentile(run, skip) / median(run, skip)


def memory(run: Measurement, skip: int) -> float:
    """Bytes of memory at the peak."""
    return float(run.peak_pss)


def disk(run: Measurement, skip: int) -> float:
    """Bytes kept on disk for each byte of input."""
    return run.state_bytes / run.input_bytes


MEASURES: dict[str, Callable[[Measurement, int], float]] = {
    "throughput": throughput,
    "median": median,
    "tail": tail,
    "memory": memory,
    "disk": disk,
}


def middle(runs: Sequence[Measurement], skip: int, measure: str) -> float | None:
    """The measure's median over the repetitions that succeeded."""
    values = [MEASURES[measure](run, skip) for run in runs if not run.error]
    return statistics.median(values) if values else None


def judge(target: Target, runs: Sequence[Measurement], skip: int) -> Verdict:
    """Subject and baseline of the same repetition are divided by each other first: they ran under the same conditions."""
    measure = MEASURES[target.measure]
    by_label = {(run.label, run.repetition): measure(run, skip) for run in runs if run.case == target.case and not run.error}
    values = []
    for (label, repetition), value in by_label.items():
        base = 1.0 if target.baseline is None else by_label.get((target.baseline, repetition))
        if label == target.subject and base is not None:
            values.append(value / base)
    if not values:
        return Verdict(target, None, None, None, None)
    value = statistics.median(values)
    reached = value >= target.bound if target.relation == "at least" else value <= target.bound
    return Verdict(target, value, min(values), max(values), reached)


def verdicts(runs: Sequence[Measurement], skips: dict[str, int]) -> list[Verdict]:
    """All targets of the cases that were run."""
    return [judge(target, runs, skips[target.case]) for target in TARGETS if target.case in skips]
