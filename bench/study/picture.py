"""One picture: how the log grows and shrinks, a panel for each kind of window and each segment age."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot


def draw(path: Path, found: Sequence[dict[str, Any]], seconds: float) -> None:
    kinds, ages = (list(dict.fromkeys(one[name] for one in found)) for name in ("kind", "segment age"))
    figure, axes = pyplot.subplots(len(kinds), len(ages), figsize=(12, 3.6 * len(kinds)), squeeze=False, sharey="row")
    for line, kind in zip(axes, kinds, strict=True):
        for axis, age in zip(line, ages, strict=True):
            for one in found:
                if (one["kind"], one["segment age"]) == (kind, age):
                    times = [seconds * number for number in range(len(one["sizes"]))]
                    axis.plot(times, [size / 1024 for size in one["sizes"]], linewidth=1.0, label=f"dirty ratio {one['dirty ratio']}")
            axis.set_title(f"{kind}, segments of {1e3 * age:.0f} ms", fontsize=9, loc="left")
            axis.set_xlabel("s", fontsize=8)
            axis.set_ylabel("log, KiB", fontsize=8)
            axis.set_ylim(bottom=0)
            axis.grid(True, alpha=0.3)
            axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
