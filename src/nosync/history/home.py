"""A home opened for reading: any view as of any kept epoch, without Spark and without the running flow."""

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from nosync.history.changes import Change, batches, changes_schema, steps
from nosync.history.epochs import epochs_of
from nosync.history.moments import epoch_at
from nosync.history.query import answer
from nosync.history.record import ViewRecord
from nosync.history.status import read_live, recorded_safe, status_of
from nosync.history.stored_view import StoredView
from nosync.journal.chain import Chain, read_chain
from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.past import TieredReader, image_at, openings, past_records, whole_image
from nosync.journal.record import NOT_OURS, Record
from nosync.model.arguments import checked, did_you_mean
from nosync.model.errors import Corrupt, Invalid, NotInHistory, reading
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, NO_RECORD, Epoch, RecordNumber, TraceName, epochs
from nosync.model.layers import Covers, LayerInfo
from nosync.model.moment import At
from nosync.model.picture import Picture
from nosync.model.status import Status
from nosync.model.store import Remote, Store
from nosync.observe.figures import rows_kept
from nosync.observe.introductions import status_as_html, status_in_a_line
from nosync.state.cache import LayerCache
from nosync.state.cover import Slice, cover, pieces
from nosync.state.layer import Layer, verify
from nosync.state.leaves import leaf_layers, within
from nosync.state.slicing import opened
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.placed import on_remote

HOMES = "Give the folder that was passed as home= when the flow was started."


@checked()
def open(home: str | Path) -> "Home":
    """The flow in this folder as of now, or its copy at the URL of a remote. A running flow is not disturbed; open again to see newer
    epochs.

    >>> ns.open("state/shop").views
    ('spend',)
    """
    if "://" not in str(home):
        return Home(Path(home))
    folder = Path(tempfile.mkdtemp(prefix="nosync-"))
    opened = Home(folder, open_remote(str(home)), alone=True)
    weakref.finalize(opened, shutil.rmtree, folder, ignore_errors=True)
    return opened


KNOWN_COVERS, KNOWN_IMAGES, OPEN_LAYERS = 256, 4, 4096


class Home:
    """What a flow has left in its home. With a `remote`, layers that only that has are fetched as they are read; where it stands `alone`,
    the folder is no more than a place for them.
    """

    def __init__(self, path: Path, remote: Remote | None = None, alone: bool = False) -> None:
        if not path.is_dir():
            what = "is a file" if path.exists() else "is not there"
            raise Invalid(f'"{path}" {what}: it is not the home of a flow', hint=HOMES)
        self.path = path
        self.disk = LocalDisk(path)
        self._cache = LayerCache(OPEN_LAYERS)
        self._covers: dict[tuple[str, Epoch | None], Covers] = {}
        chain = read_chain(remote if remote is not None and alone else self.disk)
        if not chain.number:
            said = remote.address if remote is not None and alone else path
            raise Invalid(f'"{said}" is not the home of a flow', hint=HOMES)
        self.past = Past(self.disk, remote, chain.base)
        self._recent = chain.records
        self.image, self.safe = self._alone(remote) if remote is not None and alone else self._at_home(chain)
        if self.image.declared is None:
            raise Corrupt(f'"{path}" has no declaration', hint="Start the flow on this home again.")
        with reading("the declaration in the journal", NOT_OURS):
            self._records = {name: ViewRecord.from_json(text) for name, text in self.image.declared.views.items()}

    def __repr__(self) -> str:
        return f"Home of {status_in_a_line(self.status, str(self.path))}"

    def _repr_html_(self) -> str:
        rows = rows_kept(self.image, {name: record.trace for name, record in self._records.items()})
        return status_as_html(self.status, str(self.path), rows)

    def _at_home(self, chain: Chain) -> tuple[Image, dict[str, Epoch]]:
        image = chain.image()
        safe = recorded_safe(image, self.disk, chain, lambda number: [record for record in chain.records if record.number > number])
        return image, safe

    def _alone(self, remote: Remote) -> tuple[Image, dict[str, Epoch]]:
        image = on_remote(self.past.whole(self._recent), remote)
        return image, {"site": image.epoch}

    @property
    def epoch(self) -> Epoch:
        """The newest computed epoch; 0 before the first."""
        return self.image.epoch

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(self._records)

    @checked()
    def schema(self, name: str) -> pa.Schema:
        return self.record(name).schema

    def record(self, name: str) -> ViewRecord:
        """What the journal says of a view; `Invalid` where there is none of that name."""
        return find_view(self._records, name)

    def resolve(self, at: At) -> Epoch | None:
        """The epoch that `at=` means: a number; a time (a datetime, ISO text, "1 hour ago"): the newest that was opened by then; "safe":
        the newest that survives every failure that the flow is protected against. None, the newest, stays None."""
        return epoch_at(at, self.image, self.past.openings, lambda: Epoch(min(self.safe.values())))

    @checked(epoch="Pass at=.", version="Pass at=.")
    def view(self, name: str, at: At = None) -> StoredView:
        """The rows of the view as of an epoch (the newest by default; see `resolve`).

        >>> home.view("spend", at=1).to_pylist()
        [{'user': 'ann', 'spent': 3.5}]
        >>> home.view("spend").get(user="ann")
        {'user': 'ann', 'spent': 3.5}
        """
        record, epoch = self.record(name), self.resolve(at)
        return StoredView(self, name, record, self.epoch if epoch is None else epoch, self.covers(name, epoch))

    def batches(self, name: str, at: At = None) -> Iterator[pa.RecordBatch]:
        """The same rows block by block, for views larger than memory.

        >>> sum(batch.num_rows for batch in home.batches("spend"))
        1
        """
        return self.view(name, at).batches()

    def changes(self, name: str, since: At = None, until: At = None) -> pa.Table:
        """What the epochs after `since` (else all) up to `until` (else the newest) have added to the view and taken from it, oldest first:
        its columns with `_epoch`, `_time` and `_diff`. An epoch that is not kept counts among the next one that is.
        """
        record = self.record(name)
        found = [batch for step in self.steps(name, since, until) for batch in batches(record, step, self.layers)]
        return pa.Table.from_batches(found, changes_schema(record.schema))

    def steps(self, name: str, since: At = None, until: At = None) -> list[Change]:
        """How `changes` are read."""
        record, first, last = self.record(name), self.resolve(since) or NO_EPOCH, self.resolve(until)
        last = self.epoch if last is None else last
        for epoch in (epoch for epoch in (first, last) if epoch):
            self.covers(name, epoch)  # refuses what is not kept
        begun = self.image.begun.get(record.trace)
        first = max(first, Epoch(begun.epoch - 1)) if begun else first
        kept = [epoch for epoch in epochs(first + 1, last) if epoch in self.image.kept and (begun is None or epoch >= begun.epoch)]
        image = self.image if first >= self.image.since else self.past.whole(self._recent)
        times = {entry.epoch: entry.at for entry in self.openings()} if kept else {}
        return list(steps(pieces(image.traces.get(record.trace, {})), kept, first, times, lambda epoch: image.covers(record.trace, epoch)))

    def openings(self) -> list[Opened]:
        """Of all epochs, oldest first, with what each took from the sources."""
        found = {entry.epoch: entry for entry in (*self.past.openings(), *self.image.opened.values())}
        return [found[epoch] for epoch in sorted(found)]

    def history(self) -> pa.Table:
        """One row an epoch: when it was opened, from which slices, rows in and out, layers and bytes, and which failures it survives."""
        views = {name: record.trace for name, record in self._records.items()}
        return epochs_of([*self.past.records(), *self._recent], self.image, self.safe, views)

    def sql(self, statement: str, at: At = None) -> pa.Table:
        """The answer to a query over the views, all as of one epoch. Needs DuckDB (`pip install 'nosync[sql]'`), not Spark."""
        epoch = self.resolve(at) or self.epoch
        return answer(statement, self.views, lambda name: self.view(name, epoch or None).to_arrow())

    def covers(self, name: str, epoch: Epoch | None) -> Covers:
        """What is read of a view as of an epoch."""
        if (name, epoch) not in self._covers:
            self._covers[name, epoch] = covers_at(self.image, self.record(name), name, epoch, self.past)
            while len(self._covers) > KNOWN_COVERS:
                del self._covers[next(iter(self._covers))]
        return self._covers[name, epoch]

    def layers(self, parts: Iterable[Slice], whole: bool = False) -> list[Layer]:
        """The open layers. They are verified: at once where they are read as a `whole`, else block by block as they are searched."""
        return opened(parts, self._verified if whole else self._doubted)

    def _verified(self, info: LayerInfo) -> Layer:
        return verify(self._cache.open(self._brought(info), info))

    def _doubted(self, info: LayerInfo) -> Layer:
        layer = self._cache.open(self._brought(info), info)
        layer.doubt()
        return layer

    def bring(self, step: Change) -> None:
        """Fetches what a step reads and only the remote has, for those who read it from the folder."""
        for layer, _ in (*(step.own or ()), *step.before, *(step.after if step.own is None else ())):
            self._brought(layer)

    def _brought(self, info: LayerInfo) -> Path:
        """Where the layer lies; fetched from the remote first, if only that has it."""
        if self.past.remote is not None and not self.disk.exists(info.path):
            self.past.remote.download(info.path, self.disk)
        return self.path

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
    remote: Remote | None
    base: RecordNumber
    known: list[Image] = field(default_factory=list, compare=False)

    def image_at(self, image: Image, epoch: Epoch, number: RecordNumber = NO_RECORD) -> Image:
        """An image that knows the covers as of an epoch. The last few are remembered: whoever asks for one old epoch asks for others."""
        for one in (image, *self.known):
            if one.since <= epoch <= one.epoch and one.number >= number:
                return one
        found = image_at(TieredReader(self.disk, self.remote), image, self.base, epoch, number)
        self.known.insert(0, found)
        del self.known[KNOWN_IMAGES:]
        return found

    def records(self) -> list[Record]:
        """All that were rolled up."""
        return list(past_records(TieredReader(self.disk, self.remote), self.base))

    def whole(self, recent: Iterable[Record]) -> Image:
        """The flow with every layer that it ever had. `recent` are the records that were not rolled up."""
        return whole_image(TieredReader(self.disk, self.remote), self.base, recent)

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
    readable = [layer for layer in {layer.path: layer for layer in (*layers, *later)}.values() if past.has(layer)]
    found = cover([layer for layer in readable if layer.upper <= epoch + 1], epoch)
    lost = [leaf for leaf in leaf_layers(layers) if leaf.lower <= epoch and not any(within(leaf, layer) for layer in found)]
    if not lost:
        return found
    around = min((layer for layer in readable if within(lost[0], layer)), key=lambda layer: layer.upper - layer.lower, default=None)
    nearest = f"epoch {around.lower - 1} or {around.upper - 1}" if around else "a later epoch"
    raise NotInHistory(
        f'epoch {epoch} of view "{name}" is not kept',
        hint=f"Ask for {nearest}: between, what was kept by epoch is lost, and only a layer of several epochs is left.",
    )
