"""Which layers are where, without listing all that was ever made.

Names of layers begin with their first epoch, so that recent ones are listed alone; the few old ones that still count are asked for by name.
"""

from collections.abc import Container, Iterable

from nosync.journal.entries import Restored, RolledBack
from nosync.journal.image import Image
from nosync.journal.names import epoch_prefix, layer_folder
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges
from nosync.model.store import Remote, Store
from nosync.state.cover import cover, pieces
from nosync.state.leaves import leaf_layers, within


def layers_there(remote: Remote, image: Image) -> set[str]:
    """Those layers that an image names and a remote has."""
    known = image.layers()
    recent = {layer.path.rpartition("/")[0]: epoch_prefix(image.since + 1) for layer in known if layer.lower > image.since}
    old = [layer.path for layer in known if layer.lower <= image.since]
    return {layer.path for layer in known} & {*remote.sizes_of(recent), *remote.there(old)}


def on_remote(image: Image, remote: Remote) -> Image:
    """The flow as far as a remote alone has it: layers of the last epochs may still be under way, and some are there as one with others.
    The image knows every layer.
    """
    placed, found = layers_there(remote, image), image.copy()
    views = {TraceName(view["trace"]) for view in image.declared.views.values()} if image.declared else set()
    parts = [layers for trace in views for layers in pieces(image.traces.get(trace, {})).values()]
    missing = [leaf.lower for layers in parts for leaf in uncovered(layers, placed)]
    found.apply(found.number, RolledBack(Epoch(min([image.epoch, *(lower - 1 for lower in missing)]))))
    found.apply(found.number, Restored(tuple(layer.path for layer in found.layers() if layer.path not in placed), ()))
    return found


def uncovered(layers: Iterable[LayerInfo], placed: Container[str]) -> list[LayerInfo]:
    """The leaf layers of a trace whose updates are not there, oldest first."""
    known = list(layers)
    there = cover([layer for layer in known if layer.path in placed], max((layer.upper for layer in known), default=NO_EPOCH))
    return [leaf for leaf in leaf_layers(known) if not any(within(leaf, layer) for layer in there)]


def recent_layers(store: Store, image: Image) -> list[str]:
    """All layers on a store, named by a record or not, that begin after the epoch from which on the image knows everything."""
    declared = image.declared
    parts = {(trace, range) for trace, ranges in image.traces.items() for range in ranges}
    if declared is not None:
        names = [*declared.feeders, *map(TraceName, declared.retired)]
        parts |= {(trace, range) for trace in names for range in shard_ranges(declared.shards)}
    return list(store.sizes_of({layer_folder(trace, range): epoch_prefix(image.since + 1) for trace, range in parts}))
