"""Which layers are where. There are few at any time: what nobody needs is given up, and what must stay readable is folded into few.
"""

from collections.abc import Iterable

from nosync.journal.entries import Restored, RolledBack
from nosync.journal.image import Image
from nosync.journal.names import epoch_prefix, layer_folder
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.shards import shard_ranges
from nosync.model.store import Disk, Store
from nosync.state.cover import pieces
from nosync.tiers.choosing import uncovered


def layers_there(remote: Store, image: Image) -> set[str]:
    """Those layers that an image names and a remote has."""
    known = {layer.path for layer in image.layers()}
    return known & remote.sizes_of({path.rpartition("/")[0]: "" for path in known}).keys()


def image_on_remote(image: Image, remote: Store) -> Image:
    """The flow as far as a remote alone has it: layers of the last epochs may still be under way, and some are there as one with others."""
    return _as_far_as(image, remote, {TraceName(view["trace"]) for view in image.declared.views.values()} if image.declared else set())


def _as_far_as(image: Image, store: Store, traces: Iterable[TraceName]) -> Image:
    """Up to the last epoch as of which a store has all of these."""
    uploaded, found = layers_there(store, image), image.copy()
    parts = [layers for trace in traces for layers in pieces(image.traces.get(trace, {})).values()]
    missing = [layer.begin for layers in parts for layer in uncovered(layers, uploaded)]
    found.apply(found.number, RolledBack(Epoch(min([image.epoch, *(begin - 1 for begin in missing)]))))
    found.apply(found.number, Restored(tuple(layer.path for layer in found.layers() if layer.path not in uploaded), ()))
    return found


def image_in_home(image: Image, home: Disk) -> Image:
    """The flow as far as its home has it: layers of the last epochs may be on their way from the hosts where tasks wrote them. What sinks
    have got need not be there.
    """
    sinks = {sink.get("trace") for sink in image.declared.sinks.values()} if image.declared else set()
    state = [trace for trace in image.traces if trace not in sinks]
    coming = any(layer.place and layer.trace not in sinks and not home.exists(layer.path) for layer in image.newest_layers())
    return _as_far_as(image, home, state) if coming else image


def layers_on(store: Store, image: Image, since: Epoch = NO_EPOCH) -> list[str]:
    """All layers on a store that begin with this epoch or later, named by a record or not."""
    declared = image.declared
    parts = {(trace, range) for trace, ranges in image.traces.items() for range in ranges}
    if declared is not None:
        names = [*declared.feeders, *map(TraceName, declared.retired)]
        parts |= {(trace, range) for trace in names for range in shard_ranges(declared.shards)}
    after = epoch_prefix(since) if since else ""
    return list(store.sizes_of({layer_folder(trace, range): after for trace, range in parts}))
