"""A home opened for reading: any view as of any kept epoch, without Spark and without the running flow."""

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from nosync.history.changes import ChangeStep, batches, changes_schema, check_clear, steps
from nosync.history.epochs import epochs_of
from nosync.history.moments import epoch_at
from nosync.history.query import answer
from nosync.history.record import ViewRecord
from nosync.history.status import read_live, recorded_safe, status_of
from nosync.history.stored_view import StoredView
from nosync.history.view_covers import Past, covers_at, find_view
from nosync.journal.chain import Chain, read_chain
from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.names import INPUT, RECORDS
from nosync.journal.past import Stretch
from nosync.journal.record import NOT_OURS
from nosync.model.absent import public
from nosync.model.arguments import checked
from nosync.model.errors import Corrupt, Invalid, NosyncError, reading
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, epochs
from nosync.model.layers import Covers, LayerInfo
from nosync.model.moment import At
from nosync.model.picture import Picture
from nosync.model.status import Status
from nosync.model.store import Remote
from nosync.observe.figures import rows_kept
from nosync.observe.introductions import status_as_html, status_in_a_line
from nosync.state.cache import LayerCache
from nosync.state.cover import LayerRange, pieces
from nosync.state.layer import Layer, verify
from nosync.state.partial_layer import opened
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.inventory import image_in_home, image_on_remote
from nosync.tiers.reader_leases import HeldLease

HOMES = "Give the folder that was passed as home= when the flow was started."


@checked()
def open(home: str | Path) -> "Home":
    """The flow in this folder as of now, or its copy at the URL of a remote. A running flow is not disturbed; open again to see newer
    epochs.

    >>> ns.open("state/shop").views
    ('spend',)
    """
    if str(home) in ("", "."):
        raise Invalid(f'home="{home}" names no home of a flow', hint=HOMES)
    if "://" not in str(home):
        return Home(Path(home).expanduser())
    folder = Path(tempfile.mkdtemp(prefix="nosync-"))
    opened = Home(folder, open_remote(str(home)), alone=True)
    weakref.finalize(opened, shutil.rmtree, folder, ignore_errors=True)
    return opened


KNOWN_COVERS, OPEN_LAYERS = 256, 4096
COUNTED_ROWS = 100_000  # of those kept for a view, which are read in milliseconds


@public
class Home:
    """What a flow has left in its home. With a `remote`, layers that only that has are fetched as they are read; where it stands `alone`,
    the folder is no more than a place for them.

    What there is when it is opened is held by a lease, which every reading renews (see `tiers.reader_leases`). After more than ten minutes
    without any, some of it may be gone: then the newest state of affairs is looked up again.

    >>> home = ns.open("state/shop")
    >>> home.epoch, home.views
    (1, ('spend',))
    """

    WITHIN = ("record", "change_steps", "covers", "layers", "bring", "lend", "counted", "disk", "past", "image")

    def __init__(self, path: Path, remote: Remote | None = None, alone: bool = False) -> None:
        if not path.is_dir():
            what = "is a file" if path.exists() else "is not there"
            raise Invalid(f'"{path}" {what}: it is not the home of a flow', hint=HOMES)
        self.path = path
        self.disk = LocalDisk(path)
        self._cache = LayerCache(OPEN_LAYERS)
        self._covers: dict[tuple[str, Epoch | None], Covers] = {}
        self._lease = HeldLease(self.disk) if not alone and (path / RECORDS).is_dir() else None
        chain = read_chain(remote if remote is not None and alone else self.disk)
        if not chain.number:
            said = remote.address if remote is not None and alone else path
            raise Invalid(f'"{said}" is not the home of a flow', hint=HOMES)
        self._take(chain, remote if alone else None, remote)

    def _take(self, chain: Chain, source: Remote | None, remote: Remote | None) -> None:
        self.past = Past(self.disk, remote, chain.base)
        self._recent = chain.records
        self.image, self.safe = self._alone(chain, source) if source is not None else self._at_home(chain)
        if self.image.declared is None:
            raise Corrupt(f'"{self.path}" has no declaration', hint="Start the flow on this home again.")
        with reading("the declaration in the journal", NOT_OURS):
            self._records = {name: ViewRecord.from_json(text) for name, text in self.image.declared.views.items()}
        if self._lease is not None:
            self._lease.take(self.image.number)

    def _hold(self) -> None:
        """Before anything is read."""
        if self._lease is not None and not self._lease.renew():
            self._covers.clear()
            self._take(read_chain(self.disk), None, self.past.remote)

    def lend(self) -> None:
        """Others will read, in other processes: the lease stays for ten minutes, whatever becomes of this object."""
        self._hold()
        if self._lease is not None:
            self._lease.lend()

    def __repr__(self) -> str:
        return f"Home of {status_in_a_line(self.status, str(self.path))}"

    def _repr_html_(self) -> str:
        return status_as_html(self.status, str(self.path), self.counted())

    def counted(self) -> dict[str, str]:
        """The rows of each view, for people: those of large views are not read to be counted, but are at most what is kept for them."""
        kept = rows_kept(self.image, {name: record.trace for name, record in self._records.items()})
        found = {name: f"at most {rows:,}" for name, rows in kept.items()}
        with suppress(NosyncError):  # a layer that is damaged, or on its way home
            for name in [name for name, rows in kept.items() if rows <= COUNTED_ROWS]:
                found[name] = f"{sum(batch.num_rows for batch in self.batches(name)):,}"
        return found

    def _at_home(self, chain: Chain) -> tuple[Image, dict[str, Epoch]]:
        image = image_in_home(chain.image(), self.disk)
        safe = recorded_safe(image, self.disk, chain, lambda number: [record for record in chain.records if record.number > number])
        return image, safe

    def _alone(self, chain: Chain, remote: Remote) -> tuple[Image, dict[str, Epoch]]:
        image = image_on_remote(chain.image(), remote)
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
        """The columns of a view.

        >>> home.schema("spend").names
        ['user', 'spent']
        """
        return self.record(name).schema

    def record(self, name: str) -> ViewRecord:
        """What the journal says of a view; `Invalid` where there is none of that name."""
        return find_view(self._records, name)

    def resolve(self, at: At) -> Epoch | None:
        """The epoch that `at=` means: a number; a time (a datetime, ISO text, "1 hour ago"): the newest that was opened by then; "safe":
        the newest that survives every failure that the flow is protected against. None, the newest, stays None.

        >>> home.resolve(1)
        1
        """
        return epoch_at(at, self.image, self.past.openings, lambda: Epoch(min(self.safe.values())))

    @checked(epoch="Pass at=.", version="Pass at=.")
    def view(self, name: str, at: At = None) -> StoredView:
        """The rows of the view as of an epoch (the newest by default; see `resolve`).

        >>> home.view("spend", at=1).to_pylist()
        [{'user': 'ann', 'spent': 3.5}]
        >>> home.view("spend").get(user="ann")
        {'user': 'ann', 'spent': 3.5}
        """
        self._hold()
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

        >>> home.changes("spend").column("_diff").to_pylist()
        [1]
        """
        record = self.record(name)
        found = [batch for step in self.change_steps(name, since, until) for batch in batches(record, step, self.layers)]
        return pa.Table.from_batches(found, changes_schema(record.schema))

    def change_steps(self, name: str, since: At = None, until: At = None) -> list[ChangeStep]:
        """How `changes` are read."""
        self._hold()
        check_clear(name, self.record(name))
        record, first, last = self.record(name), self.resolve(since) or NO_EPOCH, self.resolve(until)
        last = self.epoch if last is None else last
        for epoch in (epoch for epoch in (first, last) if epoch):
            self.covers(name, epoch)  # refuses what is not kept
        if first > last:
            raise Invalid(f"epoch {first}, after which changes are asked for, comes after epoch {last}", hint="Pass since= before until=.")
        begun = self.image.begun.get(record.trace)
        first = max(first, Epoch(begun.epoch - 1)) if begun else first
        kept = [epoch for epoch in epochs(first + 1, last) if epoch in self.image.kept and (begun is None or epoch >= begun.epoch)]
        times, layers = {entry.epoch: entry.at for entry in self.openings()} if kept else {}, self.image.traces.get(record.trace, {})
        return list(steps(pieces(layers), kept, first, times, lambda epoch: self.image.covers(record.trace, epoch)))

    def openings(self) -> list[Opened]:
        """Of all epochs, oldest first, with what each took from the sources.

        >>> [opened.epoch for opened in home.openings()]
        [1]
        """
        found = {entry.epoch: entry for entry in (*self.past.openings(), *self.image.opened.values())}
        return [found[epoch] for epoch in sorted(found)]

    def history(self) -> pa.Table:
        """One row an epoch: when it was opened, from which slices, rows in and out, layers and bytes, and which failures it survives. Of
        epochs that were given up, rows out, layers and bytes are null sooner or later: nobody knows them any more.

        >>> home.history().column("epoch").to_pylist()
        [1]
        """
        recent = [entry for record in self._recent for entry in record.entries]
        parts = [*self.past.stretches(), Stretch(RecordNumber(self.past.base + 1), self.image.number, recent, whole=True)]
        return epochs_of(parts, self.image, self.safe, {view: record.trace for view, record in self._records.items()})

    def sql(self, statement: str, at: At = None) -> pa.Table:
        """The answer to a query over the views, all as of one epoch. Needs DuckDB (`pip install 'nosync[sql]'`), not Spark.
        >>> home.sql("select count(*) as users from spend").to_pylist()
        [{'users': 1}]
        """
        epoch = (self.epoch or None) if at is None else self.resolve(at)
        return answer(statement, self.views, lambda name: self.view(name, epoch).to_arrow())

    def covers(self, name: str, epoch: Epoch | None) -> Covers:
        """What is read of a view as of an epoch."""
        if (name, epoch) not in self._covers:
            self._covers[name, epoch] = covers_at(self.image, self.record(name), name, epoch, self.past)
            while len(self._covers) > KNOWN_COVERS:
                del self._covers[next(iter(self._covers))]
        return self._covers[name, epoch]

    def layers(self, parts: Iterable[LayerRange], whole: bool = False) -> list[Layer]:
        """The open layers. They are verified: at once where they are read as a `whole`, else block by block as they are searched."""
        if self._lease is not None:
            self._lease.renew()
        return opened(parts, self._verified if whole else self._doubted)

    def _verified(self, info: LayerInfo) -> Layer:
        return verify(self._cache.open(self._brought(info), info))

    def _doubted(self, info: LayerInfo) -> Layer:
        layer = self._cache.open(self._brought(info), info)
        layer.doubt()
        return layer

    def bring(self, step: ChangeStep) -> None:
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
        return status_of(self.image, self.safe, read_live(self.disk, self.image), sum(self.disk.sizes(INPUT).values()))
