"""The figures of a flow's state: what each trace takes, by the journal's image."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from nosync.journal.image import Image
from nosync.model.identifiers import TraceName
from nosync.model.picture import Box, Figures, Picture

RECENT = 100


def figures_of(picture: Picture, image: Image, progress: Sequence[Mapping[str, Any]] = ()) -> dict[str, Figures]:
    """By the id of each box that keeps state. `progress`: of recent epochs, for the times."""
    times = _times(progress[-RECENT:])
    return {box.id: _figures(box, image, times) for box in picture.boxes if box.traces}


def _figures(box: Box, image: Image, times: Mapping[str, list[float]]) -> Figures:
    newest = [layer for trace in box.traces for found in image.newest.get(trace, {}).values() for layer in found]
    medians = [median(times[trace]) for trace in box.traces if times.get(trace)]
    rows, size = sum(layer.rows for layer in newest), sum(layer.bytes for layer in newest)
    return Figures(rows, len(newest), size, round(sum(medians), 1) if medians else None)


def rows_kept(image: Image, views: Mapping[str, TraceName]) -> dict[str, int]:
    """By view; what was replaced but not merged yet is counted too."""
    newest = {name: [layer for found in image.newest.get(trace, {}).values() for layer in found] for name, trace in views.items()}
    return {name: sum(layer.rows for layer in layers) for name, layers in newest.items()}


def _times(progress: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Milliseconds of each trace's slowest task, epoch by epoch."""
    found: dict[str, list[float]] = {}
    for one in progress:
        for operator in one["stateOperators"]:
            found.setdefault(operator["operatorName"], []).append(float(operator["taskMs"]))
    return found
