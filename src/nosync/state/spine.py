"""Which layers to merge, so that the newest cover stays short and no row is rewritten often.

Pure. Called after an epoch, and again after each merge until it answers None; the merge itself runs behind the stream.

A layer's *tier* is the power of `width` that its rows reach in units of `floor_rows`, but never less than the tier of any newer layer: a
small layer beneath a big one counts as big, so tiers only rise towards the past and each is one run of neighbours. As soon as `width`
neighbours share a tier they are merged.

Bounds, for n rows in the largest layer of the cover, once nothing is left to merge:
* the cover has at most (width - 1) * (1 + tier(n)) layers, where tier(n) = floor(log_width(n / floor_rows)) or 0: `longest_cover`;
* a row is rewritten at most about `width` times per tier and usually once, so O(log n) times; a base of n rows waits until width - 1 layers
  of at least n / width rows lie above it.
Layers below width * floor_rows rows share the lowest tier: merging them costs a few file openings whatever they hold, so keeping them
few is worth more than rewriting them seldom.

A dirty ratio that was set (`model.compaction`) has the oldest layers merged earlier: `plan_cleaning`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

from nosync.model.compaction import Compaction
from nosync.model.errors import Internal
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import Covers, LayerInfo
from nosync.state.cover import LayerRange, layer_ranges

FAN_IN = 8
SMALL_FAN_IN = 64  # of the lowest tier: while merging is behind, each merge catches up by as much as it can
WIDTH = 4
FLOOR_ROWS = 1024


class Run(Protocol):
    """What counts of a layer: which epochs, and how many rows."""

    @property
    def lower(self) -> Epoch: ...
    @property
    def upper(self) -> Epoch: ...
    @property
    def rows(self) -> int: ...


R = TypeVar("R", bound=Run)


@dataclass(frozen=True, slots=True)
class Level:
    """What a cover has of epochs [lower, upper) of a shard: one layer; after a rescaling perhaps several, of different ranges."""

    lower: Epoch
    upper: Epoch
    rows: int
    ranges: tuple[LayerRange, ...]


def levels(covers: Covers, shard: HashRange) -> list[Level]:
    """The cover of a shard, newest first, as levels that share no epoch. Of a part of a layer, rows are estimated by its width."""
    found: list[Level] = []
    for layer, part in layer_ranges(covers, shard):
        rows = layer.rows * part.both(layer.range).width // layer.range.width
        if found and layer.upper > found[-1].lower:
            last = found.pop()
            found.append(Level(min(last.lower, layer.lower), last.upper, last.rows + rows, (*last.ranges, (layer, part))))
        else:
            found.append(Level(layer.lower, layer.upper, rows, ((layer, part),)))
    return found


def merges_of(chosen: Iterable[Level]) -> list[tuple[HashRange, list[LayerRange]]]:
    """What is to be merged, by range: nearly always one. Where a hash was never written to in these epochs, there is no merged layer for it
    either: it would be the only one there, and nobody could tell what it was made of. Nor where one epoch alone has written: nothing would
    be shorter for it. And no layer goes, for some of its hashes, beyond the epochs that changed these: it would pass for what did.
    """
    parts = [one for level in chosen for one in level.ranges]
    found: list[tuple[HashRange, tuple[Epoch, Epoch]]] = []
    for lower, upper in pairwise(sorted({end for _, part in parts for end in part})):
        held = HashRange(lower, upper)
        inside = [layer for layer, part in parts if part.overlaps(held)]
        if not inside:
            continue
        span = min(layer.lower for layer in inside), max(layer.upper for layer in inside)
        if found and found[-1] == (HashRange(found[-1][0].lower, lower), span):
            held = HashRange(found.pop()[0].lower, upper)
        found.append((held, span))
    merges = [(held, [(layer, part.both(held)) for layer, part in parts if part.overlaps(held)]) for held, _ in found]
    newest_first = [(held, sorted(inside, key=lambda one: -one[0].upper)) for held, inside in merges]
    return [(held, inside) for held, inside in newest_first if len({(layer.lower, layer.upper) for layer, _ in inside}) > 1]


def plan_merge(
    newest_cover: Sequence[R], fan_in: int = FAN_IN, width: int = WIDTH, floor_rows: int = FLOOR_ROWS, small_fan_in: int = SMALL_FAN_IN
) -> tuple[R, ...] | None:
    """Neighbours to replace by one layer for epochs [last.lower, first.upper), newest first; None when the cover is short enough.

    At most `fan_in` of them, of the lowest tier `small_fan_in`. Small tiers come first, and of a long run the cheapest neighbours.
    """
    _check_order(newest_cover)
    for run in _runs(newest_cover, width, floor_rows):
        if len(run) >= width:
            lowest = _tier(max(layer.rows for layer in run), width, floor_rows) == 0
            size = min(len(run), max(fan_in, small_fan_in) if lowest else fan_in)
            windows = [run[start : start + size] for start in range(len(run) - size + 1)]
            return tuple(min(windows, key=lambda window: sum(layer.rows for layer in window)))
    return None


def plan_cleaning(newest_cover: Sequence[R], knobs: Compaction) -> tuple[R, ...] | None:
    """The oldest of a cover, where newer layers have so many of its rows that the knobs call it dirty."""
    rows = [layer.rows for layer in newest_cover]
    return tuple(newest_cover[-FAN_IN:]) if len(rows) > 1 and knobs.is_dirty(sum(rows[:-1]), sum(rows)) else None


def longest_cover(rows: int, width: int = WIDTH, floor_rows: int = FLOOR_ROWS) -> int:
    """The most layers a cover can have when nothing is left to merge and its largest layer has `rows` rows."""
    return (width - 1) * (1 + _tier(rows, width, floor_rows))


def space_amplification(all_layers: Iterable[LayerInfo], newest_cover: Iterable[LayerInfo]) -> float:
    """Bytes kept per byte needed for the newest state: the price of history and of merges whose inputs are still held."""
    kept = sum(layer.bytes for layer in all_layers)
    needed = sum(layer.bytes for layer in newest_cover)
    return kept / needed if needed else 1.0


def _runs(newest_cover: Sequence[R], width: int, floor_rows: int) -> list[list[R]]:
    runs: list[list[R]] = []
    highest = -1
    for layer in newest_cover:
        tier = _tier(layer.rows, width, floor_rows)
        if tier > highest:
            runs.append([])
            highest = tier
        runs[-1].append(layer)
    return runs


def _tier(rows: int, width: int, floor_rows: int) -> int:
    tier, limit = 0, floor_rows * width
    while rows >= limit:
        tier, limit = tier + 1, limit * width
    return tier


def _check_order(newest_cover: Sequence[Run]) -> None:
    for newer, older in pairwise(newest_cover):
        if older.upper > newer.lower:
            raise Internal(f"{newer!r} and {older!r} overlap or are not newest first")
