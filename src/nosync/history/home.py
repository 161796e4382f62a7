"""A home opened for reading: any view as of any kept epoch, without Spark and without the running flow."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from nosync.history.moments import epoch_at
from nosync.history.reader import rows
from nosync.history.record import ViewRecord
from nosync.history.status import read_live, recorded_safe, status_of
from nosync.journal.chain import read_chain
from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.past import TieredReader, image_at, openings, whole_image
from nosync.journal.record import NOT_OURS
from nosync.model.arguments import checked, did_you_mean
from nosync.model.errors import Corrupt, Invalid, NotInHistory, reading
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber, TraceName
from nosync.model.layers import Covers, LayerInfo
from nosync.model.moment import At
from nosync.model.picture import Picture
from nosync.model.status import Status
from nosync.model.store import Store
from nosync.observe.figures import rows_kept
from nosync.observe.introductions import status_as_html, status_in_a_line
from nosync.state.cover import cover, pieces, slices
from nosync.state.layer import open_layer, verify
from nosync.state.leaves import leaf_layers, within
from nosync.state.slicing import opened
from nosync.store.disk import LocalDisk

HOMES = "Give the folder that was passed as home= when the flow was started."


@checked()
def open(home: str | Path) -> "Home":
    """The flow in this folder as of now. A running flow is not disturbed; open again to see newer epochs.

    >>> ns.open("state/shop").views
    ('spend',)
    """
    return Home(Path(home))


class Home:
    """What a flow has left in its home."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            what = "is a file" if path.exists() else "is not there"
            raise Invalid(f'"{path}" {what}: it is not the home of a flow', hint=HOMES)
        self.path = path
        self.disk = LocalDisk(path)
        chain = read_chain(self.disk)
        if not chain.number:
            raise Invalid(f'"{path}" is not the home of a flow', hint=HOMES)
        self.image = chain.image()
        self.past = Past(self.disk, None, chain.base)
        self.safe = recorded_safe(
            self.image, self.disk, chain, lambda number: [record for record in chain.records if record.number > number]
        )
        if self.image.declared is None:
            raise Corrupt(f'"{path}" has no declaration', hint="Start the flow on this home again.")
        with reading("the declaration in the journal", NOT_OURS):
            self._records = {name: ViewRecord.from_json(text) for name, text in self.image.declared.views.items()}

    def __repr__(self) -> str:
        return f"Home of {status_in_a_line(self.status, str(self.path))}"

    def _repr_html_(self) -> str:
        rows = rows_kept(self.image, {name: record.trace for name, record in self._records.items()})
        return status_as_html(self.status, str(self.path), rows)

    @property
    def epoch(self) -> Epoch:
        """The newest computed epoch; 0 before the first."""
        return self.image.epoch

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(self._records)

    @checked()
    def schema(self, name: str) -> pa.Schema:
        return find_view(self._records, name).schema

    def resolve(self, at: At) -> Epoch | None:
        """The epoch that `at=` means: a number; a time (a datetime, ISO text, "1 hour ago"): the newest that was opened by then; "safe":
        the newest that survives every failure that the flow is protected against. None, the newest, stays None."""
        return epoch_at(at, self.image, self.past.openings, lambda: Epoch(min(self.safe.values())))

    @checked(epoch="Pass at=.", version="Pass at=.")
    def view(self, name: str, at: At = None) -> pa.Table:
        """All rows of the view as of an epoch (the newest by default; see `resolve`).

        >>> home.view("spend", at=1).to_pylist()
        [{'user': 'ann', 'spent': 3.5}]
        """
        return pa.Table.from_batches(self.batches(name, at), self.schema(name))

    def batches(self, name: str, at: At = None) -> Iterator[pa.RecordBatch]:
        """The same rows block by block, for views larger than memory.

        >>> sum(batch.num_rows for batch in home.batches("spend"))
        1
        """
        record = find_view(self._records, name)
        covers = covers_at(self.image, record, name, self.resolve(at), self.past)
        first = () if any(held.contains(0) for held in covers) else ((),)
        for number, found in enumerate([*first, *(slices(covers, held) for held in sorted(covers))] if self.epoch else ()):
            layers = opened(found, lambda layer: verify(open_layer(self.path, layer)))
            with reading(f'view "{name}"', "Its layers do not fit what the journal says of it. `nosync fsck HOME` says what is there."):
                yield from rows(record, layers, owns_whole=number == 0)

    @property
    def picture(self) -> Picture:
        """The graph of the program that last ran here."""
        assert self.image.declared is not None
        with reading("the graph in the journal", NOT_OURS):
            return Picture.from_json(self.image.declared.flow, self.image.declared.picture)

    @property
    def status(self) -> Status:
        """How the flow stands as of now, as the running flow itself says it: `run.status` from outside."""
        return status_of(self.image, self.safe, read_live(self.disk, self.image))


def find_view(records: dict[str, ViewRecord], name: str) -> ViewRecord:
    if name not in records:
        hint = f"{did_you_mean(name, records)}There are: {', '.join(sorted(records)) or 'none'}."
        raise Invalid(f'there is no view "{name}"', hint=hint)
    return records[name]


@dataclass(frozen=True)
class Past:
    """Where to look for epochs that the image has forgotten."""

    disk: Store
    remote: Store | None
    base: RecordNumber

    def image_at(self, image: Image, epoch: Epoch, number: RecordNumber = NO_RECORD) -> Image:
        return image_at(TieredReader(self.disk, self.remote), image, self.base, epoch, number)

    def openings(self) -> list[Opened]:
        """All that were rolled up."""
        return openings(TieredReader(self.disk, self.remote), self.base, ())

    def merges(self, trace: TraceName, held: HashRange) -> list[LayerInfo]:
        """All layers of a trace that have a range of hashes and were rolled up, those merged long after their epochs too; none where
        records are lost.
        """
        with suppress(Corrupt):
            written = whole_image(TieredReader(self.disk, self.remote), self.base, ()).traces.get(trace, {})
            return [layer for around, layers in written.items() if held.within(around) for layer in layers]
        return []

    def has(self, layer: LayerInfo) -> bool:
        return self.disk.exists(layer.path) or (self.remote is not None and self.remote.exists(layer.path))


def covers_at(image: Image, record: ViewRecord, name: str, at: Epoch | None, past: Past) -> Covers:
    """The covers to read; refuses an epoch that is not kept."""
    epoch = image.epoch if at is None else at
    if at is not None and not 1 <= epoch <= image.epoch:
        kept = f"Ask for epoch 1 to {image.epoch}." if image.epoch else "No epoch has been computed yet."
        raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=kept)
    if at is not None and at not in image.kept:
        kept = " or ".join(map(str, image.kept.near(at)))
        raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=f"Ask for epoch {kept}.")
    begun = image.begun.get(record.trace)
    if begun is not None and epoch < begun.epoch and at is not None:
        hint = f"Ask for epoch {begun.epoch} or later: the view came with a changed program then."
        raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=hint)
    known = past.image_at(image, epoch, begun.number if begun else NO_RECORD)
    by_piece = pieces(known.traces.get(record.trace, {}))
    for layers in by_piece.values():
        spanning = next((layer for layer in leaf_layers(layers) if layer.lower <= epoch < layer.upper - 1), None)
        if spanning is not None:
            hint = f"Ask for epoch {spanning.lower - 1} or {spanning.upper - 1}: those between were computed at once after a failure."
            raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=hint)
    covers = known.covers(record.trace, epoch)
    if epoch == image.epoch:
        return covers
    for held, chosen in covers.items():
        if not all(past.has(layer) for layer in chosen):
            newer = [layer for layer in image.layers() if layer.trace == record.trace and held.within(layer.range)]
            later = [*newer, *past.merges(record.trace, held)]
            elsewhere = past.remote is None and image.started is not None and bool(image.started.remote)
            covers[held] = chosen if elsewhere else _readable(by_piece[held], later, name, epoch, past)
    return covers


def _readable(
    layers: Sequence[LayerInfo], later: Sequence[LayerInfo], name: str, epoch: Epoch, past: Past
) -> tuple[LayerInfo, ...]:
    """Another cover where the best one has layers that were lost, with the home that had them or with a restart of its host: there may be
    one layer of several epochs, merged `later`, or the small ones alone.
    """
    known = {layer.path: layer for layer in (*layers, *later) if layer.upper <= epoch + 1}
    found = cover([layer for layer in known.values() if past.has(layer)], epoch)
    needed = [leaf for leaf in leaf_layers(layers) if leaf.lower <= epoch]
    if all(any(within(leaf, layer) for layer in found) for leaf in needed):
        return found
    raise NotInHistory(
        f'epoch {epoch} of view "{name}" is not kept',
        hint="What was kept of it alone is lost: later epochs have it as a part of theirs. Ask for a later epoch.",
    )
