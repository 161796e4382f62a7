"""One picture: epoch times of the lanes, and how soon a flow is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

COLOURS = {"off": "#6b7280", "local": "#c2410c", "remote": "#2563eb", "s3": "#0f766e"}


def draw(path: Path, found: dict[str, Any]) -> None:
    panels = [name for name in ("cost", "small", "remote", "recovery") if name in found]
    figure, axes = pyplot.subplots(1, len(panels), figsize=(6 * len(panels), 3.8), squeeze=False)
    for axis, name in zip(axes.flat, panels, strict=True):
        if name == "recovery":
            _recovery(axis, found[name])
        else:
            _lanes(axis, found[name])
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _lanes(axis: Any, case: dict[str, Any]) -> None:
    """The share of epochs that took at most so long."""
    for name, facts in case["lanes"].items():
        times = sorted(ms for turn in facts["epochs_ms"] for ms in turn)
        axis.plot(times, [(number + 1) / len(times) for number in range(len(times))], color=COLOURS[name], label=name, linewidth=1.4)
    axis.set_xscale("log")
    axis.set_xlabel("ms an epoch", fontsize=8)
    axis.set_ylabel("share of epochs", fontsize=8)
    axis.set_title(f"{case['rows'] // case['files']:,} rows an epoch", fontsize=9, loc="left")
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=8)


def _recovery(axis: Any, found: list[dict[str, Any]]) -> None:
    labels = [f"{facts['engine']}\n{facts['keys']:,} keys" for facts in found]
    axis.bar(labels, [sorted(facts["resumed"])[len(facts["resumed"]) // 2] for facts in found], color="#c2410c", label="back after a crash")
    axis.bar(labels, [facts["epoch"] for facts in found], color="#6b7280", width=0.4, label="ordinary epoch")
    axis.set_ylabel("s", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.set_title("from start to the first new epoch", fontsize=9, loc="left")
    axis.legend(fontsize=8)
