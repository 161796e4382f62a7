"""Which layers are where, without listing all that was ever made.

Names of layers begin with their first epoch, so that recent ones are listed alone; the few old ones that still count are asked for by name.
"""

from nosync.journal.image import Image
from nosync.journal.names import epoch_prefix, layer_folder
from nosync.model.identifiers import TraceName
from nosync.model.shards import shard_ranges
from nosync.model.store import Remote, Store


def layers_there(remote: Remote, image: Image) -> set[str]:
    """Those layers that an image names and a remote has."""
    known = image.layers()
    recent = {layer.path.rpartition("/")[0]: epoch_prefix(image.since + 1) for layer in known if layer.lower > image.since}
    old = [layer.path for layer in known if layer.lower <= image.since]
    return {layer.path for layer in known} & {*remote.sizes_of(recent), *remote.there(old)}


def recent_layers(store: Store, image: Image) -> list[str]:
    """All layers on a store, named by a record or not, that begin after the epoch from which on the image knows everything."""
    declared = image.declared
    parts = {(trace, range) for trace, ranges in image.traces.items() for range in ranges}
    if declared is not None:
        names = [*declared.feeders, *map(TraceName, declared.retired)]
        parts |= {(trace, range) for trace in names for range in shard_ranges(declared.shards)}
    return list(store.sizes_of({layer_folder(trace, range): epoch_prefix(image.since + 1) for trace, range in parts}))
