"""Which layers are read to know the state as of an epoch.

Pure. Called wherever state is read: by tasks for the newest epoch, by history for an older one. An epoch that changed nothing in a
range of hashes has no layer there, so a cover may skip epochs; whether an epoch is still kept is for history to say, since a compacted
trace does not show it.
"""

from collections.abc import Iterable

from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import Covers, LayerInfo


def cover(layers: Iterable[LayerInfo], at: Epoch) -> tuple[LayerInfo, ...]:
    """The fewest layers of one range of a trace that hold every update up to and including epoch `at`, newest first.

    A merged layer is preferred to its inputs wherever both end in time.
    """
    cursor = at + 1
    chosen = []
    for layer in sorted(layers, key=lambda layer: (-layer.upper, layer.lower, layer.path)):
        if layer.upper <= cursor and layer.lower < cursor:
            chosen.append(layer)
            cursor = layer.lower
    return tuple(chosen)


def overlapping(covers: Covers, wanted: HashRange) -> tuple[LayerInfo, ...]:
    """The layers among the covers that hold some of these hashes; those of one range newest first."""
    return tuple(layer for held, layers in covers.items() if held.overlaps(wanted) for layer in layers)
