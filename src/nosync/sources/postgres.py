"""Tables of PostgreSQL as sources: a consistent first snapshot, then every change, by logical decoding.

All tables of one `ns.postgres` are read together: an epoch has whole transactions, and a transaction is in one epoch with all its tables.
A slice is `{"slot", "lsn", "snapshot"}`: up to which position of the database's log it goes. The log cannot be read again once the slot has
moved on, so the flow keeps the rows in the home, and the slot moves only when they have survived every failure that the flow is
protected from: until then another run reads the same changes again.
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from nosync.clients.postgres import check_address, table_name
from nosync.model import arguments
from nosync.model.absent import connector
from nosync.model.columns import DIFF
from nosync.model.errors import Invalid, Unavailable
from nosync.model.source import Slice, Taken
from nosync.sources.pgoutput import RowChange, Table
from nosync.sources.postgres_columns import Column, arrow, schema_of
from nosync.sources.postgres_slot import Slot

NAME = re.compile(r"[a-z0-9_]{1,63}")


@arguments.checked()
def postgres(url: str, tables: Sequence[str], slot: str = "nosync", publication: str | None = None) -> "Postgres":
    """A database whose tables are sources: `db = ns.postgres(url, ["orders", "customers"])`, `flow.source("orders", db["orders"])`.

    Rows are kept by the table's primary key; a table without one needs `replica identity full`. `slot` is the name of the replication slot,
    one for each flow that reads; it is created with the first start, and keeps the database's log until the flow has it safe.
    `publication`: one that has all these tables; without it one is created, named as the slot. The database needs `wal_level=logical`.
    Needs the extra: pip install 'nosync[postgres]'.

    >>> ns.postgres("postgresql://user@host/shop", ["orders"])["orders"].what
    'table "public.orders" of PostgreSQL'
    """
    if not tables or isinstance(tables, str):
        raise Invalid("ns.postgres reads at least one table", hint='Pass tables=["orders"].')
    check_address(url, "ns.postgres")
    if not NAME.fullmatch(slot):
        raise Invalid(f'ns.postgres: "{slot}" is no name for a slot', hint="Use lower-case letters, digits and underscores.")
    return Postgres(Slot(url, slot, publication, tuple(table_name(table) for table in tables)))


@dataclass(repr=False)
class Postgres:
    """See `postgres`. What is shared by its tables: which changes belong to the next epoch."""

    slot: Slot
    lock: threading.RLock = field(default_factory=threading.RLock)
    position: int | None = None
    batch: dict[Table, list[RowChange]] = field(default_factory=dict)
    snapshot: bool = False
    due: bool = False
    asked: set[Table] = field(default_factory=set)
    started: set[Table] = field(default_factory=set)
    sources: dict[Table, "PostgresRows"] = field(default_factory=dict)
    declared: dict[Table, "PostgresRows"] = field(default_factory=dict)
    outstanding: dict[int, set[Table]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ns.postgres({', '.join('.'.join(table) for table in self.slot.tables)})"

    def __getitem__(self, table: str) -> "PostgresRows":
        """The source of one table."""
        name = table_name(table)
        if name not in self.slot.tables:
            known = ", ".join(".".join(found) for found in self.slot.tables)
            raise Invalid(f'table "{table}" is not one of those that ns.postgres was given', hint=f"They are {known}.")
        return self.sources.setdefault(name, PostgresRows(self, name))

    def start(self, table: Table, folder: Path, taken: Taken) -> None:
        """The newest of what any table has: an epoch has all of them."""
        latest = taken.latest
        with self.lock:
            if table in self.started or not self.started:  # the first of this start
                self.position, self.asked, self.started, self.batch, self.outstanding = None, {*self.declared}, set(), {}, {}
                self.slot.begin(folder)
            self.started.add(table)
            if latest is not None:
                self.position = max(self.position or 0, latest["lsn"])

    def changes(self, table: Table) -> tuple[int, list[RowChange], bool] | None:
        """What is new in a table, up to a position that is the same for all."""
        with self.lock:
            if table in self.asked:
                self._look()
            self.asked.add(table)
            found = self.batch.pop(table, [])
            if self.position is None or not (found or self.due):
                return None
            self.outstanding.setdefault(self.position, set()).add(table)
            return self.position, found, self.snapshot

    def _look(self) -> None:
        """More, once all tables have taken what there was."""
        if self.asked != {*self.declared} or any(self.batch.values()):
            return
        tables = {table: source.columns for table, source in self.declared.items()}
        if self.position is None:
            self.position, self.batch = self.slot.snapshot(tables)
            self.snapshot = self.due = True
        else:
            before = self.position
            self.position, self.batch = self.slot.changes(tables, before)
            self.snapshot, self.due = False, self.position > before and not self.batch
        self.asked = set()

    def acknowledge(self, table: Table, lsn: int) -> None:
        """The slot moves behind what no table needs any more."""
        with self.lock:
            self.outstanding.get(lsn, set()).discard(table)
            self.outstanding = {place: tables for place, tables in self.outstanding.items() if tables}
            if all(place > lsn for place in self.outstanding):
                self.slot.advance(lsn)


@connector("source", "postgres")
@dataclass(eq=False, repr=False)
class PostgresRows:
    """One table. `unwritten` has the rows of slices until the flow has them."""

    database: Postgres
    name: Table
    append_only: bool = False
    columns: tuple[Column, ...] = ()
    unwritten: dict[int, pa.Table] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f'{self.database}["{".".join(self.name)}"]'

    @property
    def what(self) -> str:
        return f'table "{".".join(self.name)}" of PostgreSQL'

    def declare(self, name: str, spark: SparkSession) -> StructType:
        try:
            self.columns = self.database.slot.columns(self.name)
        except Unavailable as error:
            hint = "A table's columns are asked for when it is declared: run again once it answers."
            raise Unavailable(error.message, hint=hint) from None
        finally:
            self.database.slot.close()  # who knows whether the flow will be started
        self.schema, self.database.declared[self.name] = schema_of(self.columns), self
        return self.schema

    def keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.key)

    def start(self, folder: Path, taken: Taken) -> None:
        self.unwritten = {}
        self.database.start(self.name, folder, taken)

    def available(self) -> Slice | None:
        found = self.database.changes(self.name)
        if found is None:
            return None
        lsn, changes, snapshot = found
        self.unwritten[lsn] = self._rows(changes)
        return {"slot": self.database.slot.name, "lsn": lsn, "snapshot": snapshot}

    def _rows(self, changes: Sequence[RowChange]) -> pa.Table:
        """An update with the same key is one row, which replaces the one before."""
        keys, rows = self.keys(), list[tuple[int, dict[str, str | None]]]()
        for change in changes:
            moved = change.removed is not None and (
                change.added is None or not keys or any(change.removed[key] != change.added[key] for key in keys)
            )
            rows += [(-1, change.removed)] if moved and change.removed is not None else []
            rows += [(1, change.added)] if change.added is not None else []
        arrays = [arrow(column, [row.get(column.name) for _, row in rows], self.what) for column in self.columns]
        names = [*(column.name for column in self.columns), DIFF]
        return pa.table([*arrays, pa.array([diff for diff, _ in rows], pa.int64())], names=names)

    def table(self, slice: Slice) -> pa.Table:
        if slice["lsn"] not in self.unwritten:
            raise Unavailable(f"{self.what}: the changes up to {slice['lsn']} are being read again", hint="It is tried again.")
        return self.unwritten[slice["lsn"]]

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        return spark.createDataFrame(self.table(slice), StructType(list(self.schema.fields)).add(DIFF, LongType()))

    def acknowledge(self, slice: Slice) -> None:
        self.unwritten.pop(slice["lsn"], None)
        self.database.acknowledge(self.name, slice["lsn"])

    def close(self) -> None:
        self.database.slot.close()
