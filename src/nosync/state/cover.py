"""Which layers are read to know the state as of an epoch, and which part of them.

Pure. Called wherever state is read: by tasks for the newest epoch, by history for an older one. An epoch that changed nothing in a
range of hashes has no layer there, so a cover may skip epochs; whether an epoch is still kept is for history to say, since a compacted
trace does not show it. Whoever reads what may be incomplete asks `is_complete`.

After a rescaling the layers of a trace have ranges that overlap. Then the hash space is cut at all their ends into *pieces*: within a piece
a layer has either all hashes or none, and layers are chosen as if there were no others. So whatever is read of a layer, it is the
*part* that lies in the pieces for which it was chosen. A layer that was given up for some hashes (`LayerInfo.without`) is in none of their
pieces.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from nosync.model.hash_range import HashRange, remainder
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.layers import Covers, LayerInfo, leaves_of
from nosync.model.retention import Kept
from nosync.state.leaves import leaf_layers, within

LayerRange = tuple[LayerInfo, HashRange]
"""A layer, and the hashes for which it is to be read: all that it has, or fewer."""

Written = Mapping[HashRange, Sequence[LayerInfo]]
"""The layers of a trace, by the range that they were written with."""


def cover(layers: Iterable[LayerInfo], at: Epoch, kept: Kept | None = None) -> tuple[LayerInfo, ...]:
    """The fewest layers of one range of a trace that hold every update up to and including epoch `at`, newest first.

    A merged layer is preferred to its inputs wherever both end in time, and versioned ones are taken only where it needs them: in part, if
    `at` is one of the epochs that are `kept`.
    """
    known = list(layers)
    plain = [layer for layer in known if not layer.versions]
    chosen = _tiles(plain, at)
    if len(plain) == len(known) or is_complete(chosen, known, at):
        return chosen
    return _tiles(_with_versions(known, plain, at, kept), at)


def is_complete(chosen: Sequence[LayerInfo], layers: Iterable[LayerInfo], at: Epoch) -> bool:
    """Whether all updates up to an epoch that are in some layer are in the chosen ones too."""
    return has_updates(chosen, known_updates(layers), at)


def has_updates(chosen: Sequence[LayerInfo], updates: Iterable[LayerInfo], at: Epoch) -> bool:
    """Whether of these updates (see `known_updates`) all up to an epoch are in the chosen layers."""
    return all(is_covered(layer, chosen, at) for layer in updates if layer.begin <= at)


def known_updates(layers: Iterable[LayerInfo]) -> list[LayerInfo]:
    """Layers that together say in which epochs something changed, oldest first: leaf layers; versioned ones some of whose leaves have been
    given up, and what lies beneath the first of them. What was merged beside such a chain says nothing more about its epochs.
    """
    known = list(layers)
    chain = versioned_chain(known)
    if not chain:
        return leaf_layers(known)
    plain, folded = leaf_layers(layer for layer in known if not layer.versions), chain[-1].upper
    found = [layer for layer in at_bottom(known, start_of(known)) if layer.upper == chain[0].lower and not layer.versions][:1]
    for layer in chain:
        leaves = [leaf for leaf in plain if within(leaf, layer)]
        found += leaves if leaves_of(leaves) == layer.leaves else [layer]
    behind = leaf_layers(layer for layer in known if layer.upper > folded)
    return found + [replace(layer, first=max(layer.begin, folded)) for layer in behind]


def is_covered(layer: LayerInfo, chosen: Iterable[LayerInfo], at: Epoch | None = None) -> bool:
    """Whether all epochs of a layer, or those up to `at`, are epochs of the chosen ones together."""
    first, last = layer.begin, layer.upper if at is None else min(layer.upper, Epoch(at + 1))
    for other in sorted(chosen, key=lambda other: (not other.bottom, other.lower)):
        if other.lower > first and not other.bottom:
            break
        first = max(first, other.end)
    return first >= last


def versioned_chain(layers: Iterable[LayerInfo], start: Epoch | None = None) -> list[LayerInfo]:
    """Versioned layers, oldest first, each of which begins where the one before ends; the first at the `start` of the trace, or where a
    merged layer ends that begins there. Of several such chains the one that goes on for longest. What is connected to nothing is of no use.
    """
    known = list(layers)
    begun = at_bottom(known, start_of(known) if start is None else start)
    beginnings = sorted({layer.lower if layer.versions else layer.upper for layer in begun})
    longest: dict[Epoch, LayerInfo] = {}
    for layer in sorted((layer for layer in known if layer.versions), key=lambda layer: (layer.upper, -layer.versions, layer.path)):
        longest[layer.lower] = layer
    chains = [_followed(longest, beginning) for beginning in beginnings]
    return max(chains, key=lambda chain: (chain[-1].upper if chain else 0, -chain[0].lower if chain else 0), default=[])


def start_of(layers: Iterable[LayerInfo]) -> Epoch:
    """The first epoch with an update. A merged layer may begin earlier: with an epoch in which other hashes changed. Of leaf layers the
    first may have been given up before others, and not those at whose bottom it is.
    """
    known = list(layers)
    return min((layer.begin for layer in (*leaf_layers(known), *(one for one in known if one.bottom))), default=NO_EPOCH)


def at_bottom(layers: Iterable[LayerInfo], start: Epoch) -> list[LayerInfo]:
    """Those beneath which there is nothing."""
    return [layer for layer in layers if layer.bottom or layer.lower <= start]


def _followed(longest: Mapping[Epoch, LayerInfo], beginning: Epoch) -> list[LayerInfo]:
    found: list[LayerInfo] = []
    while (layer := longest.get(found[-1].upper if found else beginning)) is not None:
        found.append(layer)
    return found


def _tiles(layers: Iterable[LayerInfo], at: Epoch) -> tuple[LayerInfo, ...]:
    cursor = at + 1
    chosen = []
    for layer in sorted(layers, key=lambda layer: (-layer.end, layer.lower, layer.path)):
        if layer.end <= cursor:
            chosen.append(layer)
            cursor = layer.lower
    return tuple(chosen)


def _with_versions(known: list[LayerInfo], plain: list[LayerInfo], at: Epoch, kept: Kept | None) -> list[LayerInfo]:
    """The versioned layers, and those of the others that begin or end where one of them does."""
    chain = versioned_chain(known)
    if not chain:
        return plain
    behind, edges = chain[-1].upper, {layer.lower for layer in chain}
    bottoms = [layer for layer in at_bottom(plain, start_of(known)) if layer.upper >= behind or layer.upper in edges]
    fitting = [layer for layer in plain if layer.lower >= behind] + bottoms
    return fitting + [layer.before(Epoch(at + 1)) if _is_readable(layer, at, kept) else layer for layer in chain]


def _is_readable(layer: LayerInfo, at: Epoch, kept: Kept | None) -> bool:
    """Whether the layer can be read as of an epoch before its last."""
    inside = kept is not None and at in kept and layer.lower <= at < layer.upper - 1
    return inside and not any(first <= at < last for first, last in layer.blind)


def pieces(written: Written) -> dict[HashRange, list[LayerInfo]]:
    """The layers of a trace by ranges that do not overlap, ascending: as they were written, or cut where they were rescaled."""
    ranges = sorted(held for held, layers in written.items() if layers)
    given_up = {part for held in ranges for layer in written[held] for part in layer.without}
    if not given_up and all(one.upper <= other.lower for one, other in pairwise(ranges)):
        return {held: list(written[held]) for held in ranges}
    ends = sorted({end for held in (*ranges, *given_up) for end in held})
    cut = {HashRange(lower, upper): [held for held in ranges if held.lower <= lower < held.upper] for lower, upper in pairwise(ends)}
    found = {piece: [layer for held in around for layer in written[held]] for piece, around in cut.items()}
    left = {piece: [layer for layer in layers if not any(map(piece.within, layer.without))] for piece, layers in found.items()}
    return {piece: layers for piece, layers in left.items() if layers}


def covers_of(written: Written, at: Epoch, kept: Kept | None = None) -> Covers:
    """What is read of a trace to know its state as of an epoch."""
    return {piece: found for piece, layers in pieces(written).items() if (found := cover(layers, at, kept))}


def with_layers(covers: Covers, layers: Iterable[LayerInfo]) -> Covers:
    """The covers with more layers, each in the place of what it collapses. Each costs the same, however many ranges there are."""
    found, others = dict(covers), []
    for layer in layers:
        if layer.range in found:
            found[layer.range] = _placed(found[layer.range], layer)
        else:
            others.append(layer)
    ranges = sorted(found) if others else []
    for layer in others:
        around = _overlapping(ranges, layer.range)
        parts = _with_layer({held: found.pop(held) for held in ranges[around]}, layer)
        ranges[around] = sorted(parts)
        found |= parts
    return found


def _overlapping(ranges: Sequence[HashRange], wanted: HashRange) -> slice:
    """Where those lie that have a hash in common with the one wanted, of ranges that ascend and do not overlap."""
    first = bisect_left(ranges, wanted)
    if first and ranges[first - 1].upper > wanted.lower:
        first -= 1
    return slice(first, bisect_left(ranges, wanted.upper, first, key=lambda held: held.lower))


def _with_layer(covers: Covers, layer: LayerInfo) -> Covers:
    """Covers that all have hashes of the layer, cut where it ends."""
    found: dict[HashRange, tuple[LayerInfo, ...]] = {}
    for held, layers in covers.items():
        found |= dict.fromkeys(held.without(layer.range), layers)
        found[held.both(layer.range)] = _placed(layers, layer)
    found |= dict.fromkeys(remainder(layer.range, covers), (layer,))
    return _joined(found)


def layer_ranges(covers: Covers, wanted: HashRange) -> tuple[LayerRange, ...]:
    """What is read of the covers to know the state of these hashes, newest first. Of one layer, neighbouring parts are one."""
    if wanted in covers:
        return tuple((layer, wanted) for layer in covers[wanted])
    parts: dict[str, list[HashRange]] = {}
    layers: dict[str, LayerInfo] = {}
    for held in sorted(held for held in covers if held.overlaps(wanted)):
        part = held.both(wanted)
        for layer in covers[held]:
            layers[layer.path] = layer
            known = parts.setdefault(layer.path, [])
            touches = known and known[-1].upper == part.lower
            known.append(HashRange(known.pop().lower, part.upper) if touches else part)
    newest_first = sorted(layers.values(), key=lambda layer: -layer.end)
    return tuple((layer, part) for layer in newest_first for part in parts[layer.path])


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
