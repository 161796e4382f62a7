"""Which layers are read to know the state as of an epoch, and which part of them.

Pure. Called wherever state is read: by tasks for the newest epoch, by history for an older one. An epoch that changed nothing in a
range of hashes has no layer there, so a cover may skip epochs; whether an epoch is still kept is for history to say, since a compacted
trace does not show it.

After a rescaling the layers of a trace have ranges that overlap. Then the hash space is cut at all their ends into *pieces*: within a piece
a layer has either all hashes or none, and layers are chosen as if there were no others. So whatever is read of a layer, it is the
*slice* that lies in the pieces for which it was chosen.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import Covers, LayerInfo

Slice = tuple[LayerInfo, HashRange]
"""A layer, and the hashes for which it is to be read: all that it has, or fewer."""

Written = Mapping[HashRange, Sequence[LayerInfo]]
"""The layers of a trace, by the range that they were written with."""


def cover(layers: Iterable[LayerInfo], at: Epoch) -> tuple[LayerInfo, ...]:
    """The fewest layers of one range of a trace that hold every update up to and including epoch `at`, newest first.

    A merged layer is preferred to its inputs wherever both end in time.
    """
    cursor = at + 1
    chosen = []
    for layer in sorted(layers, key=lambda layer: (-layer.upper, layer.lower, layer.path)):
        if layer.upper <= cursor:
            chosen.append(layer)
            cursor = layer.lower
    return tuple(chosen)


def pieces(written: Written) -> dict[HashRange, list[LayerInfo]]:
    """The layers of a trace by ranges that do not overlap, ascending: as they were written, or cut where they were rescaled."""
    ranges = sorted(held for held, layers in written.items() if layers)
    if all(one.upper <= other.lower for one, other in pairwise(ranges)):
        return {held: list(written[held]) for held in ranges}
    ends = sorted({end for held in ranges for end in held})
    cut = {HashRange(lower, upper): [held for held in ranges if held.lower <= lower < held.upper] for lower, upper in pairwise(ends)}
    return {piece: [layer for held in around for layer in written[held]] for piece, around in cut.items() if around}


def covers_of(written: Written, at: Epoch) -> Covers:
    """What is read of a trace to know its state as of an epoch."""
    return {piece: found for piece, layers in pieces(written).items() if (found := cover(layers, at))}


def with_layer(covers: Covers, layer: LayerInfo) -> Covers:
    """The covers with one more layer, in the place of what it collapses."""
    if layer.range in covers:
        return covers | {layer.range: _placed(covers[layer.range], layer)}
    found: dict[HashRange, tuple[LayerInfo, ...]] = {}
    for held, layers in covers.items():
        found |= dict.fromkeys(held.without(layer.range), layers)
        if held.overlaps(layer.range):
            found[held.both(layer.range)] = _placed(layers, layer)
    found |= dict.fromkeys(remainder(layer.range, covers), (layer,))
    return _joined(found)


def slices(covers: Covers, wanted: HashRange) -> tuple[Slice, ...]:
    """What is read of the covers to know the state of these hashes, newest first. Of one layer, neighbouring parts are one."""
    parts: dict[str, list[HashRange]] = {}
    layers: dict[str, LayerInfo] = {}
    for held in sorted(held for held in covers if held.overlaps(wanted)):
        part = held.both(wanted)
        for layer in covers[held]:
            layers[layer.path] = layer
            known = parts.setdefault(layer.path, [])
            touches = known and known[-1].upper == part.lower
            known.append(HashRange(known.pop().lower, part.upper) if touches else part)
    newest_first = sorted(layers.values(), key=lambda layer: -layer.upper)
    return tuple((layer, part) for layer in newest_first for part in parts[layer.path])


def remainder(whole: HashRange, taken: Iterable[HashRange]) -> list[HashRange]:
    """The parts of a range that are in none of those taken."""
    left = [whole]
    for one in taken:
        left = [rest for part in left for rest in part.without(one)]
    return left


def _placed(layers: Sequence[LayerInfo], layer: LayerInfo) -> tuple[LayerInfo, ...]:
    newer = (other for other in layers if other.lower >= layer.upper)
    older = (other for other in layers if other.upper <= layer.lower)
    return (*newer, layer, *older)


def _joined(covers: Covers) -> Covers:
    """Neighbours of which the same is read, as one."""
    found: Covers = {}
    last: HashRange | None = None
    for held in sorted(covers):
        if last is not None and last.upper == held.lower and found[last] == covers[held]:
            found[HashRange(last.lower, held.upper)] = found.pop(last)
            last = HashRange(last.lower, held.upper)
        else:
            found[held] = covers[held]
            last = held
    return found
