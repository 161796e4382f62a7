"""Where the boxes of a drawing go: columns by how far a box is from the sources, boxes in a column near what they read. Pure.

An edge that passes a column gets a place of its own there, so that it runs between boxes and not behind them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from nosync.model.picture import Picture

GAP_ACROSS, GAP_DOWN, MARGIN = 70.0, 22.0, 24.0
PASSING = 8.0  # the height of a place for an edge
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle: of a box, or where an edge passes a column."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of boxes by their ids; each edge as the places it touches, from input to reader."""

    boxes: dict[str, Rectangle]
    edges: list[list[Rectangle]]
    width: float
    height: float


def laid_out(picture: Picture, sizes: Mapping[str, tuple[float, float]]) -> Layout:
    """The layout for boxes of these widths and heights."""
    depths = _depths(picture)
    ways = [_way(name, box.id, depths) for box in picture.boxes for name in box.inputs]
    columns: list[list[str]] = [[] for _ in range(max(depths.values(), default=0) + 1)]
    for name in dict.fromkeys([*(box.id for box in picture.boxes), *(stop for way in ways for stop in way)]):
        columns[depths[name] if name in depths else int(name.rpartition("@")[2])].append(name)
    _order(columns, ways)
    return _placed(columns, ways, sizes)


def _depths(picture: Picture) -> dict[str, int]:
    """Longest way from a source; sources stand just before their first reader."""
    depths: dict[str, int] = {}
    for box in picture.boxes:
        depths[box.id] = max((depths[name] + 1 for name in box.inputs), default=0)
    for box in picture.boxes:
        readers = [depths[reader.id] for reader in picture.readers(box)]
        if not box.inputs and readers:
            depths[box.id] = min(readers) - 1
    return depths


def _way(start: str, end: str, depths: Mapping[str, int]) -> list[str]:
    """The names of the places that an edge touches."""
    return [start, *(f"{start}>{end}@{column}" for column in range(depths[start] + 1, depths[end])), end]


def _order(columns: list[list[str]], ways: Sequence[Sequence[str]]) -> None:
    """Sorts each column by the middle of its neighbours, from both ends in turn: few crossings are left."""
    near: dict[str, list[str]] = {}
    for way in ways:
        for one, other in pairwise(way):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else columns[::-1]:
            places = {name: index / max(len(names), 1) for names in columns for index, name in enumerate(names)}
            middles = {name: mean(places[other] for other in near.get(name, [name])) for name in column}
            column.sort(key=lambda name: middles[name])


def _placed(columns: list[list[str]], ways: Sequence[Sequence[str]], sizes: Mapping[str, tuple[float, float]]) -> Layout:
    tall = [sum(_height(name, sizes) + GAP_DOWN for name in column) - GAP_DOWN for column in columns]
    height, x = max(tall, default=0.0) + 2 * MARGIN, MARGIN
    places: dict[str, Rectangle] = {}
    for column, own in zip(columns, tall):
        width = max(sizes[name][0] for name in column if name in sizes)
        y = (height - own) / 2
        for name in column:
            places[name] = Rectangle(x, y, width, _height(name, sizes))
            y += _height(name, sizes) + GAP_DOWN
        x += width + GAP_ACROSS
    return Layout({name: places[name] for name in sizes}, [[places[name] for name in way] for way in ways], x - GAP_ACROSS + MARGIN, height)


def _height(name: str, sizes: Mapping[str, tuple[float, float]]) -> float:
    return sizes[name][1] if name in sizes else PASSING
