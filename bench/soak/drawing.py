"""One picture: all figures over time, kills as lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from bench.soak.judging import Points
from bench.soak.sampling import Sample

MIB = 2**20


def draw(path: Path, samples: Sequence[Sample], epochs: Points, heap: Sequence[tuple[float, float, float]]) -> None:
    begun = samples[0].at
    minutes = [(sample.at - begun) / 60 for sample in samples]
    figure, axes = pyplot.subplots(4, 2, figsize=(13, 13), sharex=True)
    cells = iter(axes.flat)

    def panel(title: str, *lines: tuple[str, Sequence[float]]) -> Any:
        axis = next(cells)
        for label, values in lines:
            axis.plot(minutes, values, label=label, linewidth=1.2)
        axis.set_title(title, fontsize=9, loc="left")
        axis.grid(True, alpha=0.3)
        for before, after in pairwise(samples):
            if before.life != after.life:
                axis.axvline((after.at - begun) / 60, color="#9ca3af", linewidth=0.8, linestyle=":")
        if lines:
            axis.set_ylim(bottom=0)
        if len(lines) > 1:
            axis.legend(fontsize=7)
        return axis

    axis = panel("epoch, ms (dotted: killed)")
    axis.scatter([(at - begun) / 60 for at, _ in epochs], [value for _, value in epochs], s=2, color="#c2410c")
    axis.set_yscale("log")
    panel("memory, MiB", ("all processes (PSS)", [one.pss / MIB for one in samples]), ("Python", [one.python / MIB for one in samples]))
    axis = panel("JVM heap, MiB")
    axis.plot([(at - begun) / 60 for at, _, _ in heap], [used / MIB for _, used, _ in heap], linewidth=0.6, label="used")
    axis.plot([(at - begun) / 60 for at, _, _ in heap], [live / MIB for _, _, live in heap], linewidth=1.2, label="live")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=7)
    handles = ("file handles", [one.handles for one in samples]), ("threads", [one.threads for one in samples])
    panel("handles, threads, mapped layers", *handles, ("mapped layers", [one.mapped for one in samples]))
    for where in ("home", "remote"):
        purposes = list(getattr(samples[-1], where))
        panel(f"bytes at the {where}, MiB", *((name, [getattr(one, where)[name][1] / MIB for one in samples]) for name in purposes))
    files = ((where, [sum(count for count, _ in getattr(one, where).values()) for one in samples]) for where in ("home", "remote"))
    panel("files", *files, ("in one trace", [one.most_files for one in samples]))
    panel("epochs", ("computed", [one.epoch for one in samples]), ("kept", [one.kept for one in samples]))
    for axis in axes[-1]:
        axis.set_xlabel("minutes", fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
