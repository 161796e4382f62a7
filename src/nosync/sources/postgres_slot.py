"""A replication slot of PostgreSQL: made with a snapshot, read by SQL functions, moved on when nobody needs what lies before.

Connections are made when they are needed and again after they were lost. `HOME/input/SOURCE/slot` names a slot that this home has begun to
make: if no epoch ever came of it, the next start makes it anew.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nosync.clients.postgres import connected, full_name, identifier, psycopg, shut, talking
from nosync.model.errors import Invalid, Unavailable
from nosync.sources.pgoutput import Decoder, Described, RowChange, Table, position, spelled
from nosync.sources.postgres_columns import SETTINGS, Column
from nosync.store.disk import whole_file

if TYPE_CHECKING:
    from psycopg import Connection

Columns = Mapping[Table, Sequence[Column]]
MOST_CHANGES = 100_000  # looked at in one epoch; a transaction is never cut
QUIET_BYTES = 16 << 20  # of the log without a change of ours: the slot moves on then
PAUSE = 0.05  # seconds between looks at the log
MARK = "slot"
CATALOGUE = """
select a.attname, case when t.typbasetype <> 0 then b.typname else t.typname end, a.atttypmod,
  coalesce(a.attnum = any(i.indkey), false), c.relreplident
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
join pg_type t on t.oid = a.atttypid left join pg_type b on b.oid = t.typbasetype
left join pg_index i on i.indrelid = c.oid and i.indisprimary
where n.nspname = %s and c.relname = %s and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
order by a.attnum
"""
STATE = """
select confirmed_flush_lsn::text, wal_status, array(select schemaname || '.' || tablename from pg_publication_tables where pubname = %s)
from pg_replication_slots where slot_name = %s
"""


@dataclass
class Slot:
    """`looked` is where the database's log ended at the last look."""

    url: str = field(repr=False)
    name: str
    publication: str | None
    tables: tuple[Table, ...]
    most: int = MOST_CHANGES
    looked: str = ""
    looked_at: float = 0.0
    mark: Path | None = None
    described: dict[Table, tuple[Described, ...]] = field(default_factory=dict)
    _connection: "Connection[tuple[Any, ...]] | None" = field(default=None, repr=False)

    @property
    def what(self) -> str:
        return f'slot "{self.name}" of PostgreSQL'

    @property
    def _published(self) -> str:
        return self.publication or self.name

    def _connected(self) -> "Connection[tuple[Any, ...]]":
        if self._connection is None or self._connection.closed:
            self._connection = connected(self.url, self.what, autocommit=True)
            with talking(self.what):
                for name, value in SETTINGS.items():
                    self._connection.execute(f"set {name} = '{value}'")
        return self._connection

    def _asked(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        connection = self._connected()
        try:
            with talking(self.what):
                cursor = connection.execute(statement, given or None)
                return list(cursor.fetchall()) if cursor.description else []
        except Unavailable:
            self.close()
            raise

    def columns(self, table: Table) -> tuple[Column, ...]:
        """Those of a table now; refused where what is removed could not be told."""
        what = f'table "{".".join(table)}" of PostgreSQL'
        found = self._asked(CATALOGUE, *table)
        if not found:
            raise Invalid(f"{what} is not there", hint="Create it, or correct its name.")
        columns = tuple(Column(name, kind, modifier, key) for name, kind, modifier, key, _ in found)
        if not any(column.key for column in columns) and found[0][4] not in ("f", b"f"):
            hint = f"Give it one, or: alter table {'.'.join(table)} replica identity full."
            raise Invalid(f"{what} has no primary key: which row a change removes would not be in the log", hint)
        if found[0][4] in ("n", b"n"):
            hint = f"alter table {'.'.join(table)} replica identity default."
            raise Invalid(f"{what} keeps what a change removes out of the log (replica identity nothing)", hint)
        return columns

    def begin(self, folder: Path) -> None:
        """A run starts. `folder` is a place in the home."""
        self.close()
        self.mark, self.looked, self.described = folder / MARK, "", {}

    def snapshot(self, tables: Columns) -> tuple[int, dict[Table, list[RowChange]]]:
        """Makes the slot, and reads all rows as of the position where it begins."""
        self._make_way()
        if self.publication is None:
            listed = ", ".join(full_name(".".join(table)) for table in tables)
            self._asked(f"drop publication if exists {identifier(self.name)}")
            self._asked(f"create publication {identifier(self.name)} for table {listed} with (publish_via_partition_root = true)")
        self._write_mark()
        maker = connected(self.url, self.what, replication="database", autocommit=True)
        try:
            statement = f"CREATE_REPLICATION_SLOT {identifier(self.name)} LOGICAL pgoutput EXPORT_SNAPSHOT"
            done = maker.pgconn.exec_(statement.encode())
            if done.status != psycopg(self.what).pq.ExecStatus.TUPLES_OK:
                words = done.error_message.decode(errors="replace").strip().splitlines()[0]
                raise Invalid(f"{self.what}: {words}", hint="It needs wal_level=logical, a free slot, and a user that may replicate.")
            point, exported = (bytes(done.get_value(0, place) or b"").decode() for place in (1, 2))
            return position(point), self._rows(tables, exported)
        finally:
            maker.close()

    def _make_way(self) -> None:
        """A slot of this name is somebody else's, unless this home has begun it."""
        if not self._asked("select 1 from pg_replication_slots where slot_name = %s", self.name):
            return
        if self.mark is None or not self.mark.exists() or self.mark.read_text() != self.name:
            hint = f"Pass another slot=. If nobody reads it: select pg_drop_replication_slot('{self.name}')."
            raise Invalid(f"{self.what} is there already, and this flow has read nothing from it", hint=hint)
        self._asked("select pg_drop_replication_slot(%s)", self.name)

    def _write_mark(self) -> None:
        if self.mark is not None:
            with whole_file(self.mark) as file:
                file.write(self.name.encode())

    def _rows(self, tables: Columns, exported: str) -> dict[Table, list[RowChange]]:
        """As texts, as the log has them."""
        connection = self._connected()
        found: dict[Table, list[RowChange]] = {}
        with talking(self.what), connection.transaction():
            connection.execute("set transaction isolation level repeatable read, read only")
            connection.execute(f"set transaction snapshot '{exported}'")
            for table, columns in tables.items():
                names = [column.name for column in columns]
                query = f"select {', '.join(map(identifier, names))} from {full_name('.'.join(table))}"
                with connection.cursor().copy(f"copy ({query}) to stdout") as rows:
                    found[table] = [RowChange(table, None, dict(zip(names, row, strict=True))) for row in rows.rows()]
        return found

    def changes(self, tables: Columns, after: int) -> tuple[int, dict[Table, list[RowChange]]]:
        """Of whole transactions behind a position, and the position behind the last of them; or, where the log has grown a lot without
        any, its end."""
        if not self._news():
            return after, {}
        self._check(tables, after)
        decoder = Decoder(frozenset(tables))
        select = (
            f"select data from pg_logical_slot_peek_binary_changes('{self.name}', null, {self.most},"
            f" 'proto_version', '1', 'publication_names', '{self._published}')"
        )
        messages = [bytes(data) for (data,) in self._asked(select)]
        transactions = decoder.transactions(messages)
        new = [transaction for transaction in transactions if transaction.end > after]
        upto = new[-1].end if new else after
        if len(messages) >= self.most:
            self.most *= 1 if new else 2  # all of it is taken, and waits for being safe
            self.looked = ""
        elif not new and position(self.looked) - after > QUIET_BYTES:
            upto = position(self.looked)
        self._check_columns(tables, decoder)
        found: dict[Table, list[RowChange]] = {}
        for transaction in new:
            for change in transaction.changes:
                found.setdefault(change.table, []).append(change)
        return upto, found

    def _news(self) -> bool:
        """Whether the database's log has grown; asked now and then."""
        if time.monotonic() - self.looked_at < PAUSE:
            return False
        self.looked_at = time.monotonic()
        [(now,)] = self._asked("select pg_current_wal_flush_lsn()::text")
        before, self.looked = self.looked, str(now)
        return self.looked != before

    def _check(self, tables: Columns, after: int) -> None:
        """The slot must have everything behind the position, of all tables."""
        found = self._asked(STATE, self._published, self.name)
        hint = "What changed since then is lost. Start on a new home, with another slot: it begins with a new snapshot."
        if not found:
            raise Invalid(f"{self.what} is gone; {spelled(after)} was reached", hint=hint)
        [(confirmed, status, published)] = found
        if status == "lost" or confirmed is None:
            raise Invalid(f"{self.what} is lost: the database has given up its log (max_slot_wal_keep_size)", hint=hint)
        if position(confirmed) > after:
            raise Invalid(f"{self.what} was moved to {confirmed} by somebody else; {spelled(after)} was reached", hint=hint)
        if missing := sorted({".".join(table) for table in tables} - {*published}):
            hint = "It was dropped, renamed or taken out; of partitions the publication needs publish_via_partition_root. Put it back, or "
            hint += "start on a new home, with another slot."
            raise Invalid(f'table "{missing[0]}" is not in publication "{self._published}" of PostgreSQL', hint=hint)

    def _check_columns(self, tables: Columns, decoder: Decoder) -> None:
        """A table that has changed is reported; changes from before its last change are read as it is declared now."""
        for table, there in decoder.columns.items():
            before, self.described[table] = self.described.get(table, there), there
            declared = {column.name: (column.kind, column.modifier) for column in tables[table]}
            if before == there and {name for name, _, _ in there} == {*declared}:
                continue
            now = {column.name: (column.kind, column.modifier) for column in self.columns(table)}
            if now != declared:
                raise Invalid(
                    f'table "{".".join(table)}" of PostgreSQL has {_difference(declared, now)} since the flow was declared',
                    hint="Declare the flow again, and start it on the same home: nothing is lost.",
                )

    def advance(self, lsn: int) -> None:
        """The database may give up what lies before."""
        with suppress(Unavailable):  # the next one moves it further
            self._asked("select pg_replication_slot_advance(%s, least(%s::pg_lsn, pg_current_wal_flush_lsn()))", self.name, spelled(lsn))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        shut(connection)


def _difference(declared: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    parts = {
        "gained": now.keys() - declared.keys(),
        "lost": declared.keys() - now.keys(),
        "another type of": {name for name in now.keys() & declared.keys() if now[name] != declared[name]},
    }
    return " and ".join(f"{word} {', '.join(sorted(names))}" for word, names in parts.items() if names)
