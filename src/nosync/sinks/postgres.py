"""A table of PostgreSQL that is kept equal to a query's result.

An epoch that changes something is one transaction: its rows, and its number in a table of ours beside the target.

    nosync_outputs    target, flow, sink, history: whose output a table is; generation: the run that writes it now; epoch: up to which

The row of the target is locked first, so a run that a newer one has replaced finds that out before it writes: nothing arrives twice, and
nothing from two runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nosync.clients.postgres import check_address, connected, full_name, identifier, psycopg, shut, table_name, talking
from nosync.model import arguments
from nosync.model.absent import connector
from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Failed, Invalid, Refused, Unavailable
from nosync.model.identifiers import Epoch
from nosync.model.run import generation_of
from nosync.model.sink import Changes, Identity, Promise, overtaken
from nosync.sinks.postgres_rows import COPY_OPTIONS, as_csv, column_type, has_key_in

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

OUTPUTS = "nosync_outputs"
NULLS_NOT_DISTINCT = 150000  # the first version whose unique indexes can take nulls for equal
PIECE = 1 << 20
UNIQUE = """
select array_agg(a.attname::text) from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = %s::regclass and i.indisunique and i.indpred is null and i.indexprs is null group by i.indexrelid
"""


@arguments.checked()
def to_postgres(url: str, table: str, key: str | Sequence[str] | None = None) -> "PostgresTable":
    """Keeps a table equal to the query's result, precisely: each epoch is one transaction.

    `key`: the columns by which the result's rows differ; a row replaces the one of the same key. Without a key rows can only be added.
    A table that is not there is created from the query's columns. One that is there needs these columns, a unique index over the key, and
    must be empty, or hold this very output. Needs the extra: pip install 'nosync[postgres]'.

    >>> ns.to_postgres("postgresql://user@host/shop", "spend", key="user").promise.guarantee
    'precise'
    """
    sink = PostgresTable(url, table, (key,) if isinstance(key, str) else tuple(key or ()))
    check_address(url, sink.what)
    return sink


@connector("sink", "to_postgres")
@dataclass(repr=False)
class PostgresTable:
    """See `to_postgres`. The connection is made when it is first needed, and again after it was lost."""

    url: str = field(repr=False)
    table: str
    key: tuple[str, ...]
    run: str = ""
    identity: Identity | None = None
    _connection: "Connection[tuple[Any, ...]] | None" = field(default=None, repr=False)
    _ready: bool = False

    def __repr__(self) -> str:
        return f'ns.to_postgres("{self.table}"{f", key={list(self.key)}" if self.key else ""})'

    @property
    def what(self) -> str:
        return f'table "{self.table}" of PostgreSQL'

    @property
    def promise(self) -> Promise:
        return Promise("precise", "an epoch's rows and its number are one transaction of the database", "atomic")

    def check_query(self, sink: str, schema: pa.Schema, corrects: Sequence[str]) -> None:
        """Whether the query has the key, and one where rows may go."""
        missing = next((name for name in self.key if name not in schema.names), None)
        if missing is not None:
            raise Invalid(f'sink "{sink}": key="{missing}" is no column of the query', hint=f"They are {', '.join(schema.names)}.")
        if corrects and not self.key:
            words = f'sink "{sink}": rows of "{corrects[0]}" may go, and there is no key to find them by'
            raise Refused(words, hint="Pass key=[...].")

    def open(self, run: str, identity: Identity) -> None:
        """A database that is out of reach now is waited for with the first epoch."""
        self.run, self.identity, self._ready = run, identity, False
        with suppress(Unavailable):
            self._claimed()

    @property
    def _outputs(self) -> str:
        return full_name(f"{table_name(self.table)[0]}.{OUTPUTS}")

    def _claimed(self) -> "Connection[tuple[Any, ...]]":
        """A connection by which this run is the one that writes."""
        if self._connection is None:
            self._connection, self._ready = connected(self.url, self.what), False
            with self._transaction() as cursor:
                self._claim(cursor)
        return self._connection

    @contextmanager
    def _transaction(self) -> "Iterator[Cursor[tuple[Any, ...]]]":
        assert self._connection is not None
        try:
            with talking(self.what), self._connection.transaction(), self._connection.cursor() as cursor:
                yield cursor
        except Failed:
            raise
        except BaseException:
            self.close()
            raise

    def _claim(self, cursor: "Cursor[tuple[Any, ...]]") -> None:
        assert self.identity is not None
        cursor.execute("select pg_advisory_xact_lock(hashtext(%s))", (self._outputs,))  # two may not create one table at once
        cursor.execute(
            f"create table if not exists {self._outputs} (target text primary key, flow text not null, sink text not null,"
            " history text not null, generation bigint not null, epoch bigint not null)"
        )
        cursor.execute(f"select flow, sink, history from {self._outputs} where target = %s for update", (self.table,))
        found, ours = cursor.fetchone(), (self.identity.flow, self.identity.sink, self.identity.history)
        if found is None:
            self._check_empty(cursor)
            cursor.execute(f"insert into {self._outputs} values (%s, %s, %s, %s, 0, 0)", (self.table, *ours))
        elif found != ours:
            same = found[:2] == ours[:2]
            whose = "the same flow on another home" if same else f'flow "{found[0]}", sink "{found[1]}"'
            hint = f'Choose another table. Or empty it, and delete its row from "{OUTPUTS}": two histories in one table are nobody\'s.'
            raise Invalid(f'sink "{self.identity.sink}": {self.what} has the output of {whose}', hint=hint)
        statement = f"update {self._outputs} set generation = %s where target = %s and generation <= %s"
        cursor.execute(statement, (generation_of(self.run), self.table, generation_of(self.run)))
        if not cursor.rowcount:
            raise overtaken(self.what)

    def _check_empty(self, cursor: "Cursor[tuple[Any, ...]]") -> None:
        if not self._exists(cursor):
            return
        cursor.execute(f"select 1 from {full_name(self.table)} limit 1")
        if cursor.fetchone() is not None:
            hint = "Choose another table, or empty it first: its rows and the query's result would be mixed."
            raise Invalid(f"{self.what} has rows that no flow has written", hint=hint)

    def _exists(self, cursor: "Cursor[tuple[Any, ...]]") -> bool:
        return cursor.execute("select to_regclass(%s) is not null", (full_name(self.table),)).fetchone() == (True,)

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        if changes.empty and self._ready:
            return
        connection = self._claimed()
        with self._transaction() as cursor:
            cursor.execute(f"select generation, epoch from {self._outputs} where target = %s for update", (self.table,))
            if (found := cursor.fetchone()) is None:
                raise Failed(f'{self.what}: its row in "{OUTPUTS}" is gone', hint="Restore it, or choose another table.")
            if found[0] != generation_of(self.run):
                raise overtaken(self.what)
            if epoch <= found[1]:
                return
            if not self._ready:
                self._prepare(cursor, changes.schema, connection.info.server_version)
            if not changes.empty:
                self._write(cursor, changes.table())
            cursor.execute(f"update {self._outputs} set epoch = %s where target = %s", (epoch, self.table))
        self._ready = True

    def _prepare(self, cursor: "Cursor[tuple[Any, ...]]", schema: pa.Schema, version: int) -> None:
        """Creates the table, or finds that one fits."""
        columns = {column.name: column_type(column.type) for column in schema if column.name not in (EPOCH, DIFF)}
        for name in self.key:
            if name not in columns:
                raise Failed(f'{self.what}: key="{name}" is no column of the query', hint=f"They are {', '.join(columns)}.")
        if len(columns) != len(schema) - 2:
            raise Failed(f"{self.what}: the query has two columns of one name", hint="Give them names of their own.")
        if not self._exists(cursor):
            named = [f"{identifier(name)} {type}" for name, type in columns.items()]
            distinct = "nulls not distinct " if version >= NULLS_NOT_DISTINCT else ""
            named += [f"unique {distinct}({self._listed(self.key)})"] if self.key else []
            cursor.execute(f"create table {full_name(self.table)} ({', '.join(named)})")
            return
        select = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped"
        there = {name for (name,) in cursor.execute(select, (full_name(self.table),))}
        if missing := [name for name in columns if name not in there]:
            hint = f'Add it: alter table {self.table} add column {identifier(missing[0])} {columns[missing[0]]}.'
            raise Failed(f'{self.what} has no column "{missing[0]}"', hint=hint)
        indexed = [set(names) for (names,) in cursor.execute(UNIQUE, (full_name(self.table),))]
        if self.key and {*self.key} not in indexed:
            hint = f"Give it one: create unique index on {self.table} ({self._listed(self.key)})."
            raise Failed(f"{self.what} has no unique index over its key", hint=hint)

    def _listed(self, columns: Sequence[str], table: str = "") -> str:
        return ", ".join(table + identifier(name) for name in columns)

    def _write(self, cursor: "Cursor[tuple[Any, ...]]", table: pa.Table) -> None:
        diff = table.column(DIFF)
        rows = table.drop_columns([EPOCH, DIFF])
        removed, added = rows.filter(pc.less(diff, 0)), rows.filter(pc.greater(diff, 0))
        if not self.key:
            if removed.num_rows:
                raise Failed(f"{self.what}: the query's result loses rows, and there is no key to find them by", hint="Pass key=[...].")
            counts = diff.combine_chunks()
            self._copy(cursor, full_name(self.table), rows if pc.max(counts).as_py() == 1 else rows.take(_repeated(counts)))
            return
        keys = removed.select(list(self.key))
        self._delete(cursor, keys.filter(pa.array(~has_key_in(keys, added, self.key))))
        if not added.num_rows:
            return
        if len(added.group_by(list(self.key)).aggregate([])) != added.num_rows:
            words = f"{self.what}: key=[{', '.join(self.key)}] does not tell the rows of the query's result apart"
            raise Failed(words, hint="Name all columns that make a row its own.")
        replacing = has_key_in(added, keys, self.key)
        if not replacing.all() and self._add(cursor, added.filter(pa.array(~replacing))):
            added = added.filter(pa.array(replacing))
        if added.num_rows:
            self._upsert(cursor, added)

    def _add(self, cursor: "Cursor[tuple[Any, ...]]", rows: pa.Table) -> bool:
        """Rows that replace none of the epoch before are new, or the table has them from a time before: then nothing is added."""
        try:
            with cursor.connection.transaction():
                self._copy(cursor, full_name(self.table), rows)
        except psycopg(self.what).errors.UniqueViolation:
            return False
        return True

    def _delete(self, cursor: "Cursor[tuple[Any, ...]]", keys: pa.Table) -> None:
        if not keys.num_rows:
            return
        target = full_name(self.table)
        self._stage(cursor, keys.column_names)
        self._copy(cursor, "pg_temp.nosync_stage", keys)
        equal = " and ".join(f"t.{identifier(name)} = s.{identifier(name)}" for name in self.key)
        cursor.execute(f"delete from {target} t using pg_temp.nosync_stage s where {equal}")
        if any(column.null_count for column in keys.columns):
            same = " and ".join(f"t.{identifier(name)} is not distinct from s.{identifier(name)}" for name in self.key)
            null = " or ".join(f"s.{identifier(name)} is null" for name in self.key)
            cursor.execute(f"delete from {target} t using pg_temp.nosync_stage s where ({null}) and {same}")

    def _upsert(self, cursor: "Cursor[tuple[Any, ...]]", rows: pa.Table) -> None:
        self._stage(cursor, rows.column_names)
        self._copy(cursor, "pg_temp.nosync_stage", rows)
        columns, others = self._listed(rows.column_names), [name for name in rows.column_names if name not in self.key]
        new = ", ".join(f"{identifier(name)} = excluded.{identifier(name)}" for name in others)
        action = f"do update set {new}" if others else "do nothing"
        insert = f"insert into {full_name(self.table)} ({columns}) select {columns} from pg_temp.nosync_stage"
        cursor.execute(f"{insert} on conflict ({self._listed(self.key)}) {action}")

    def _stage(self, cursor: "Cursor[tuple[Any, ...]]", columns: Sequence[str]) -> None:
        """An empty place for rows on their way, with the types of the target."""
        cursor.execute("drop table if exists pg_temp.nosync_stage")
        select = f"select {self._listed(columns)} from {full_name(self.table)}"
        cursor.execute(f"create temporary table nosync_stage on commit drop as {select} with no data")

    def _copy(self, cursor: "Cursor[tuple[Any, ...]]", target: str, rows: pa.Table) -> None:
        content = memoryview(as_csv(rows))
        with cursor.copy(f"copy {target} ({self._listed(rows.column_names)}) from stdin {COPY_OPTIONS}") as copy:
            for start in range(0, len(content), PIECE):
                copy.write(content[start : start + PIECE])

    def close(self) -> None:
        connection, self._connection = self._connection, None
        shut(connection)


def _repeated(counts: pa.Array) -> pa.Array:
    """The number of each row, as often as it comes."""
    return pa.array([row for row, count in enumerate(counts.to_pylist()) for _ in range(count)], pa.int64())
