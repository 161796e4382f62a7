"""Which layers are to go to the remote, and what can be read there. Pure."""

from collections.abc import Iterable, Sequence

from nosync.model.hash_range import remainder
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.layers import Covers, LayerInfo
from nosync.state.cover import cover, is_covered, known_updates
from nosync.state.leaves import leaf_layers, within


def collapsing(
    waiting: Sequence[LayerInfo], layers: Iterable[LayerInfo], uploaded: set[str], others: Iterable[LayerInfo] = ()
) -> LayerInfo:
    """The layer to ship for the oldest waiting one: where merged layers stand for it and its followers in no more bytes, that for the most.

    It may begin before the waiting ones, with epochs that are there already. It must not overlap a part of what is there, be it one of the
    `others`, that other shards have written: no cover could have both.
    """
    known = list(layers)
    there = [layer for layer in (*known, *others) if layer.path in uploaded]
    best, most = waiting[0], 1
    for layer in known:
        inside = [other for other in waiting if within(other, layer)] if within(waiting[0], layer) else []
        cheap = layer.bytes <= sum(other.bytes for other in inside)
        if len(inside) > most and cheap and not any(cross(layer, other) for other in there):
            best, most = layer, len(inside)
    return best


def cross(one: LayerInfo, other: LayerInfo) -> bool:
    """Whether two layers share epochs and neither contains the other."""
    return one.lower < other.upper and other.lower < one.upper and not within(one, other) and not within(other, one)


def uncovered(layers: Iterable[LayerInfo], uploaded: set[str]) -> list[LayerInfo]:
    """The leaf layers of a trace whose updates are not there, oldest first."""
    known = list(layers)
    there = cover([layer for layer in known if layer.path in uploaded], max((layer.upper for layer in known), default=NO_EPOCH))
    return [leaf for leaf in known_updates(known) if not is_covered(leaf, there)]


def spans(layers: Iterable[LayerInfo], uploaded: set[str]) -> set[tuple[Epoch, Epoch]]:
    """The epochs of uploaded layers that stand for finer ones, from the first of these on that is not there: the state within cannot be
    read.
    """
    known = list(layers)
    coarse = [layer for layer in known if layer.path in uploaded and layer.upper > layer.lower + 1 and not layer.versions]
    versioned = [layer for layer in known if layer.path in uploaded and layer.versions]
    missing = [leaf for leaf in leaf_layers(known) if leaf.path not in uploaded or leaf.upper > leaf.lower + 1]
    missing = [leaf for leaf in missing if not is_covered(leaf, versioned)]
    first = {layer: min((leaf.lower for leaf in missing if within(leaf, layer)), default=NO_EPOCH) for layer in coarse}
    return {(lower, layer.upper) for layer, lower in first.items() if lower}


def stand_ins(layer: LayerInfo, newest: Covers) -> list[LayerInfo]:
    """The layers of the newest covers, of whichever shards, that have all its epochs for all its hashes, each once; none where some of that
    is nowhere.
    """
    found: dict[str, LayerInfo] = {}
    held = []
    for range, layers in newest.items():
        across = [other for other in layers if other.lower < layer.upper and layer.lower < other.upper]
        whole = across and across[-1].lower <= layer.lower and layer.upper <= across[0].upper
        if whole and range.overlaps(layer.range):
            held.append(range)
            found |= {other.path: other for other in across}
    return [] if remainder(layer.range, held) else list(found.values())
