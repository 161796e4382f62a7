"""One picture of all epoch times: a panel a case, a line an engine.

A rising line is state that costs more as it grows; a spike is a stall.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.cases import Case
from bench.measure import Measurement

COLOURS = {"nosync": "#c2410c", "spark-memory": "#2563eb", "spark-rocksdb": "#0f766e", "spark-stateless": "#6b7280"}
STYLES = ("-", "--", ":")


def draw(path: Path, cases: Sequence[Case], runs: Sequence[Measurement]) -> None:
    """Write the picture; the last repetition of each engine is the one shown."""
    columns = min(2, len(cases))
    lines = -(-len(cases) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(7 * columns, 3.6 * lines), squeeze=False)
    for axis in axes.flat[len(cases) :]:
        axis.set_visible(False)
    for axis, case in zip(axes.flat, cases, strict=False):
        _panel(axis, case, [run for run in runs if run.case == case.name and run.epochs])
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _panel(axis: Axes, case: Case, runs: Sequence[Measurement]) -> None:
    last = {run.label: run for run in runs}
    drawn: dict[str, int] = {}
    for label, run in last.items():
        engine = label.split(",")[0]
        style = STYLES[drawn.get(engine, 0) % len(STYLES)]
        drawn[engine] = drawn.get(engine, 0) + 1
        axis.plot(range(1, len(run.epochs) + 1), [ms for _, ms in run.epochs], style, color=COLOURS[engine], label=label, linewidth=1.3)
    axis.axvspan(0.5, case.skip + 0.5, color="#f3f4f6", zorder=0)
    axis.set_yscale("log")
    axis.set_title(f"{case.name}: {case.title}", fontsize=9, loc="left")
    axis.set_xlabel("epoch (grey: not counted)", fontsize=8)
    axis.set_ylabel("ms", fontsize=8)
    axis.grid(True, which="major", alpha=0.3)
    if last:
        axis.legend(fontsize=8)
