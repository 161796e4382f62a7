"""Leaf layers of a trace, which contain no other: together they say in which epochs a shard changed. Pure."""

from bisect import bisect_left
from collections.abc import Iterable

from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo


def within(layer: LayerInfo, other: LayerInfo) -> bool:
    """Whether all epochs of the layer are epochs of the other."""
    return other.lower <= layer.lower and layer.upper <= other.upper


def leaf_layers(layers: Iterable[LayerInfo]) -> list[LayerInfo]:
    """Oldest first. Of two layers for the same epochs, one."""
    found: dict[Epoch, LayerInfo] = {}
    lowers: list[Epoch] = []
    for layer in sorted(layers, key=lambda layer: (layer.upper - layer.lower, layer.lower, layer.path)):
        index = bisect_left(lowers, layer.lower)
        if index < len(lowers) and found[lowers[index]].upper <= layer.upper:
            continue
        lowers.insert(index, layer.lower)
        found[layer.lower] = layer
    return [found[lower] for lower in lowers]
