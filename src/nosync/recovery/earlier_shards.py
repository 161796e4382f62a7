"""What a plan must know of shards that are no more: their layers are wider than a piece, and are lost and made again as a whole. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from nosync.journal.image import Image
from nosync.model.hash_range import HashRange, remainder
from nosync.model.layers import LayerInfo
from nosync.recovery.recompute import Recompute
from nosync.state.cover import pieces
from nosync.state.leaves import leaf_layers


def as_written(leaf: LayerInfo, whole: Mapping[str, LayerInfo]) -> LayerInfo:
    """With all the hashes that it has, by path."""
    return replace(leaf, range=whole[leaf.path].reach) if leaf.path in whole else leaf


def widened(job: Recompute, layers: Iterable[LayerInfo]) -> Recompute:
    """The job for all hashes of the layers whose place is taken by what it makes: none of them goes in part."""
    inside = [layer for layer in layers if layer.trace in job.targets and job.spans(layer)]
    targets = {trace: _together(ranges, [layer.reach for layer in inside if layer.trace == trace]) for trace, ranges in job.targets.items()}
    return replace(job, targets=targets)


def _together(ranges: Iterable[HashRange], others: Iterable[HashRange]) -> frozenset[HashRange]:
    """The ranges with those others that overlap them; what overlaps is one."""
    wanted, found = list(ranges), list[HashRange]()
    for one in sorted({*others, *wanted}):
        if found and found[-1].overlaps(one):
            one = HashRange(found[-1].lower, max(found.pop().upper, one.upper))
        found.append(one)
    return frozenset(one for one in found if any(one.overlaps(other) for other in wanted))


def lost_leaves(image: Image, readable: Callable[[str], bool]) -> list[LayerInfo]:
    """Leaf layers of ranges that others overlap, written by shards that are no more, which cannot be read; nor can others of just their
    epochs.
    """
    found: dict[str, LayerInfo] = {}
    for written in image.traces.values():
        held = [one for one, layers in written.items() if layers]
        mixed = [one for one in held if any(one.overlaps(other) for other in held if other != one)]
        gone = [layer for one in mixed for layer in written[one] if not readable(layer.path)]
        leaves = {leaf for layers in pieces(written).values() for leaf in leaf_layers(layers)} if gone else set()
        there = [layer for layers in written.values() for layer in layers if gone and readable(layer.path)]
        found |= {layer.path: layer for layer in gone if layer in leaves and _is_left(layer, there)}
    return list(found.values())


def _is_left(layer: LayerInfo, others: Iterable[LayerInfo]) -> bool:
    """Whether it has hashes that it was not given up for, and for which there is no other layer of its epochs."""
    twins = [other.range for other in others if (other.lower, other.upper) == (layer.lower, layer.upper)]
    return bool(remainder(layer.range, [*layer.without, *twins]))


def remembered(lost: Iterable[LayerInfo], jobs: Sequence[Recompute]) -> set[str]:
    """Which lost leaves of earlier shards stay on record: those that are not made again. In each of their pieces some merged layer stands
    for them. Were they forgotten, and that one lost later, nobody would know that they ever were.
    """
    return {layer.path for layer in lost if not any(job.replaces(layer) for job in jobs)}
