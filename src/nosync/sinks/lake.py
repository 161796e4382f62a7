"""A table of a lake that follows a query's result: what Delta and Iceberg have in common.

An epoch that changes something is one version of the table, put upon exactly the version that was looked at, so what a run has not seen
cannot lie in between: an epoch never arrives twice, a run that was replaced never gets in, and what others do to the rows is noticed.
A run begins with a version of its own, which has no rows and shuts older ones out.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.absent import connector
from nosync.model.arguments import did_you_mean
from nosync.model.columns import DIFF, EPOCH
from nosync.model.duration import seconds
from nosync.model.errors import Invalid, Refused, Unavailable
from nosync.model.identifiers import Epoch
from nosync.model.run import generation_of
from nosync.model.sink import Changes, Identity, Promise, overtaken
from nosync.sinks.lake_types import table_schema
from nosync.sinks.replacing import Leaving, arriving, without
from nosync.sinks.rows import added

TableMode = Literal["state", "changes", "append"]
ATTEMPTS = 20
FILE_BYTES = 64 << 20
FOLD_AFTER = 32
FACTOR = 4  # by which rows in memory are larger than in a file, about


class Table(Protocol):
    """What a table of a lake must be able to do. What comes behind `create` is about the version that was loaded."""

    what: str
    addresses: Sequence[str]  # of the table, and of a file in it
    odd_names: bool  # whether columns may be called anything

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """The columns as such a table has them."""

    def load(self) -> bool:
        """The newest version; False where there is no table."""

    def create(self, schema: pa.Schema, partition_by: Sequence[str], properties: dict[str, str]) -> None:
        """An empty table. If somebody else was faster, theirs is loaded."""

    def begin(self, schema: pa.Schema, partition_by: Sequence[str], file_bytes: int) -> None:
        """Once the table is known to be the sink's: `Failed` where its columns are not these."""

    def properties(self) -> Mapping[str, str]: ...

    def epoch(self, owner: Identity) -> Epoch: ...

    def generation(self, owner: Identity) -> int: ...

    def check_foreign(self, owner: Identity) -> None:
        """`Failed` where others changed rows since the last version of ours."""

    def live(self) -> Mapping[str, int]:
        """By path, the number of rows of each file."""

    def ranges(self, path: str) -> Mapping[str, tuple[Any, Any]]:
        """The least and greatest values of its columns, where they are known."""

    def row_ids(self, path: str, columns: Sequence[str]) -> pa.Array: ...

    def rows(self, path: str) -> pa.Table: ...

    def write(self, epoch: Epoch, rows: pa.Table) -> list[Any]:
        """New files, which belong to the table once they are committed."""

    def commit(self, removed: Sequence[str], new: Sequence[Any], owner: Identity, run: str, epoch: Epoch | None) -> bool:
        """One version upon the loaded one, which has the epoch's number, or is the run's claim; False where somebody else was faster."""

    def fold(self, owner: Identity, run: str, after: int) -> None:
        """Small files become larger ones where so many stand together, in a version that changes no rows."""


def checked_mode(function: str, mode: str, key: Any) -> TableMode:
    if mode not in get_args(TableMode):
        hint = f'{did_you_mean(mode, get_args(TableMode))}Pass "state", "changes" or "append".'
        raise Invalid(f'ns.{function}: mode="{mode}" is not known', hint=hint)
    if key and mode != "state":
        words = f'ns.{function}: key= says which rows are replaced, and mode="{mode}" replaces none'
        raise Invalid(words, hint='Leave it out, or pass mode="state".')
    return mode  # type: ignore[return-value]


def checked_pace(function: str, fold_every: str | None) -> float | None:
    return None if fold_every is None else seconds(fold_every, f"a duration for fold_every of ns.{function}")


def names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


@connector("sink")
@dataclass
class LakeSink:
    """See `to_delta` and `to_iceberg`. The table is looked for when a run begins."""

    said: str  # how the user wrote it
    table: Table = field(repr=False)
    key: tuple[str, ...] = ()
    mode: TableMode = "state"
    partition_by: tuple[str, ...] = ()
    file_bytes: int = FILE_BYTES
    fold_after: int = FOLD_AFTER
    fold_every: float | None = None  # seconds
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    run: str = ""
    identity: Identity | None = None
    schema: pa.Schema | None = field(default=None, repr=False)
    _ready: bool = False
    _folded_at: float = 0.0

    def __repr__(self) -> str:
        return self.said

    def addresses(self) -> Sequence[str]:
        return self.table.addresses

    @property
    def every_epoch(self) -> bool:
        """Rows of changes say which epoch they are of."""
        return self.mode == "changes"

    @property
    def promise(self) -> Promise:
        return Promise("precise", "an epoch is one version of the table, and its number is in it", "atomic")

    def check_query(self, sink: str, schema: pa.Schema, corrects: Sequence[str]) -> None:
        """Refuses a query whose output has no place in such a table."""
        if self.mode == "append" and corrects:
            raise Refused(
                f'sink "{sink}": mode="append" needs rows that are only ever added, but "{corrects[0]}" takes back what it gave',
                hint='Pass mode="state" or mode="changes". Windows over a watermark give each row once: flow.view(..., emit="final").',
            )
        found = table_schema(sink, schema, self.mode == "changes", self.key, self.partition_by, self.table.odd_names)
        self.schema = self.table.stored(found)

    def open(self, run: str, identity: Identity) -> None:
        """A store that is out of reach now is waited for with the first epoch."""
        self.run, self.identity, self._ready, self._folded_at = run, identity, False, self.clock()
        with suppress(Unavailable):
            self._claim()

    @property
    def _owner(self) -> Identity:
        assert self.identity is not None
        return self.identity

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        if self.schema is None:
            self.check_query(self._owner.sink, pa.schema([column for column in changes.schema if column.name not in (EPOCH, DIFF)]), ())
        if changes.empty and self._ready:
            return
        written: list[Any] | None = None
        for _ in range(ATTEMPTS):
            self._claim()
            if changes.empty or self.table.epoch(self._owner) >= epoch:
                return
            if self.mode == "state":
                removed, new = self._moves(epoch, self._rows(changes.table()))
            else:
                removed, new = [], (written := self._added(epoch, changes) if written is None else written)
            if self.table.commit(removed, new, self._owner, self.run, epoch):
                self._fold()
                return
        raise Unavailable(f"{self.table.what}: others write so often that no version of ours gets in", hint="It is tried again.")

    def _fold(self) -> None:
        """Where many small files stand together, and where it is time wherever two do."""
        due = self.fold_every is not None and self.clock() - self._folded_at >= self.fold_every
        self._folded_at = self.clock() if due else self._folded_at
        if due or self.fold_after:
            self.table.fold(self._owner, self.run, 2 if due else self.fold_after)

    def _claim(self) -> None:
        """The newest version is loaded, is fit to be written upon, and is this run's to write."""
        for _ in range(ATTEMPTS):
            if not self.table.load():
                if self.schema is None:
                    return
                self.table.create(self.schema, self.partition_by, self._properties())
            self._check_owner()
            self.table.check_foreign(self._owner)
            if self.schema is None:
                return
            if not self._ready:
                self.table.begin(self.schema, self.partition_by, self.file_bytes)
            run = self.table.generation(self._owner)
            if run > generation_of(self.run):
                raise overtaken(self.table.what)
            if run == generation_of(self.run) or self.table.commit([], [], self._owner, self.run, None):
                self._ready = True
                return
        raise Unavailable(f"{self.table.what}: others write so often that this run could not begin", hint="It is tried again.")

    def _properties(self) -> dict[str, str]:
        said = {"flow": self._owner.flow, "sink": self._owner.sink, "history": self._owner.history, "mode": self.mode}
        return {f"nosync.{name}": value for name, value in said.items()}

    def _check_owner(self) -> None:
        found, ours = self.table.properties(), self._properties()
        other = {name for name, value in ours.items() if found.get(name) != value}
        if not other:
            return
        whose = f'flow "{found["nosync.flow"]}", sink "{found["nosync.sink"]}"' if "nosync.flow" in found else "nobody of ours"
        if other == {"nosync.history"}:
            whose = "the same flow on another home"
        elif other == {"nosync.mode"}:
            whose = f'this sink in mode="{found["nosync.mode"]}"'
        raise Invalid(
            f'sink "{self._owner.sink}": {self.table.what} has the output of {whose}',
            hint="Choose another table: two histories in one are nobody's.",
        )

    def _added(self, epoch: Epoch, changes: Changes) -> list[Any]:
        """Files of all rows of the epoch, some at a time."""
        new, waiting = list[Any](), list[pa.RecordBatch]()
        for batch in changes.batches():
            waiting.append(batch)
            if sum(part.nbytes for part in waiting) > FACTOR * self.file_bytes:
                new += self.table.write(epoch, self._rows(pa.Table.from_batches(waiting)))
                waiting.clear()
        return new + (self.table.write(epoch, self._rows(pa.Table.from_batches(waiting))) if waiting else [])

    def _rows(self, table: pa.Table) -> pa.Table:
        """Rows of the epoch, as the table has them; in a table of the current state with `_diff` behind."""
        assert self.schema is not None
        if self.mode != "changes":
            table = table.drop_columns([EPOCH])
        if self.mode == "append":
            table = added(table)
        behind = [pa.field(DIFF, pa.int64())] if self.mode == "state" else []
        table = table.cast(pa.schema([*self.schema, *behind]))
        for name in self.partition_by:
            if pa.types.is_string(table.schema.field(name).type):  # Delta has no empty text there, and Hive's readers neither
                column = table.column(name)
                empty = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
                table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), empty)
        return table

    def _moves(self, epoch: Epoch, rows: pa.Table) -> tuple[list[str], list[Any]]:
        """In a table of the current state: which files go, and which come; those that come are written."""
        leaving, waiting = Leaving(rows, self.key, self.table.what), [arriving(rows, self.key)]
        removed, new = list[str](), list[Any]()
        for path, count in self.table.live().items() if not leaving.none else ():
            if not leaving.may_be_within(self.table.ranges(path)):
                continue
            going = leaving.positions_in(self.table.row_ids(path, leaving.columns))
            if not len(going):
                continue
            removed.append(path)
            if len(going) < count:
                waiting.append(without(self.table.rows(path), going))
            if sum(part.nbytes for part in waiting) > FACTOR * self.file_bytes:
                new += self.table.write(epoch, pa.concat_tables(waiting))
                waiting.clear()
        leaving.check_all_found()
        return removed, new + (self.table.write(epoch, pa.concat_tables(waiting)) if waiting else [])

    def close(self) -> None:
        """Nothing is held."""
