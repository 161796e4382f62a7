"""Which layers show a view as of an epoch, for a running flow and for a home alike; and why there are none."""

from collections.abc import Sequence
from dataclasses import dataclass

from nosync.history.record import ViewRecord
from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.past import Stretch, TieredReader, openings, stretches
from nosync.model.arguments import did_you_mean
from nosync.model.errors import Invalid, NotInHistory
from nosync.model.identifiers import Epoch, RecordNumber
from nosync.model.layers import Covers, LayerInfo
from nosync.model.retention import KEEPING, Kept, not_there
from nosync.model.store import Remote, Store
from nosync.state.cover import cover, is_complete, is_covered, known_updates, pieces
from nosync.state.leaves import leaf_layers, within


def find_view(records: dict[str, ViewRecord], name: str) -> ViewRecord:
    if name not in records:
        hint = f"{did_you_mean(name, records)}There are: {', '.join(sorted(records)) or 'none'}."
        raise Invalid(f'there is no view "{name}"', hint=hint)
    return records[name]


@dataclass(frozen=True)
class Past:
    """Where to look for epochs that the image has forgotten."""

    disk: Store
    remote: Remote | None
    base: RecordNumber

    def stretches(self) -> list[Stretch]:
        """All records that were rolled up, or what is left of them."""
        return TieredReader(self.disk, self.remote).nearest(lambda some: stretches(some, self.base))

    def openings(self) -> list[Opened]:
        """All that were rolled up."""
        return openings(TieredReader(self.disk, self.remote), self.base, ())

    def has(self, layer: LayerInfo) -> bool:
        return self.disk.exists(layer.path) or (self.remote is not None and self.remote.exists(layer.path))


def covers_at(image: Image, record: ViewRecord, name: str, at: Epoch | None, past: Past) -> Covers:
    """The covers to read; refuses an epoch that is not kept."""
    epoch = image.epoch if at is None else at
    if at is not None and not 1 <= epoch <= image.epoch:
        kept = f"Ask for epoch 1 to {image.epoch}." if image.epoch else "No epoch has been computed yet."
        raise NotInHistory(f'epoch {at} of view "{name}" {not_there(epoch, image.epoch)}', hint=kept)
    if at is not None and at not in image.kept:
        kept = " or ".join(map(str, image.kept.near(at)))
        raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=f"Ask for epoch {kept}. {KEEPING}")
    begun = image.begun.get(record.trace)
    if begun is not None and epoch < begun.epoch and at is not None:
        hint = f"Ask for epoch {begun.epoch} or later: the view came with a changed program then."
        raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=hint)
    by_piece = pieces(image.traces.get(record.trace, {}))
    covers = image.covers(record.trace, epoch)
    if epoch == image.epoch:
        return covers
    for held, layers in by_piece.items():
        if not is_complete(covers.get(held, ()), layers, epoch):
            raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=_computed_at_once(layers, epoch))
    for held, chosen in covers.items():
        if not all(past.has(layer) for layer in chosen):
            elsewhere = past.remote is None and image.started is not None and bool(image.started.remote)
            covers[held] = chosen if elsewhere else _readable(by_piece[held], name, epoch, past, image.kept)
    return covers


def _computed_at_once(layers: Sequence[LayerInfo], epoch: Epoch) -> str:
    """Why the layers do not show the state as of an epoch."""
    spans = [(layer.lower, layer.upper - 1) for layer in leaf_layers(layers)] + [pair for layer in layers for pair in layer.blind]
    found = next(((first, last) for first, last in spans if first <= epoch < last), None)
    if found is None:
        return "Layers of it are lost. `nosync fsck HOME` says which."
    return f"Ask for epoch {found[0] - 1} or {found[1]}: those between were computed at once after a failure."


def _readable(
    layers: Sequence[LayerInfo], name: str, epoch: Epoch, past: Past, kept: Kept
) -> tuple[LayerInfo, ...]:
    """Another cover where the best one has layers that were lost, with the home that had them or with a restart of its host: there may be
    one layer of several epochs, merged later, or the small ones alone.
    """
    readable = [layer for layer in layers if past.has(layer)]
    found = cover(readable, epoch, kept)
    if is_complete(found, layers, epoch):
        return found
    lost = next(layer for layer in known_updates(layers) if layer.begin <= epoch and not is_covered(layer, found, epoch))
    around = min((layer for layer in readable if within(lost, layer)), key=lambda layer: layer.upper - layer.lower, default=None)
    nearest = f"epoch {around.lower - 1} or {around.upper - 1}" if around else "a later epoch"
    raise NotInHistory(
        f'epoch {epoch} of view "{name}" is not kept',
        hint=f"Ask for {nearest}: between, what was kept by epoch is lost, and only a layer of several epochs is left.",
    )
