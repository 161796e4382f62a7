"""Tables that change under our feet, and a log that is lost: each is said by name, and nothing is passed over in silence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import nosync as ns
from nosync.journal.taken import Taken
from nosync.sources.postgres import PostgresRows
from tests.crash.waiting import until
from tests.servers.postgres import Postgres


@pytest.fixture
def slot(postgres_server: Postgres) -> Iterator[str]:
    name = f"s{uuid4().hex[:8]}"
    yield name
    postgres_server.query("select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", name)


@pytest.fixture
def table(postgres_server: Postgres) -> str:
    name = f"t{uuid4().hex[:8]}"
    postgres_server.query(f"create table {name} (id int primary key, x int)")
    postgres_server.query(f"insert into {name} values (1, 1)")
    return name


def started(server: Postgres, table: str, slot: str, folder: Path, **more: Any) -> PostgresRows:
    """As a run has it, behind its snapshot."""
    source, nothing = ns.postgres(server.url(), [table], slot, **more)[table], ()
    source.declare("s", None)  # type: ignore[arg-type]  # which is for rows
    source.start(folder, Taken(lambda: iter(()), None, nothing))  # type: ignore[arg-type]
    assert [row["_diff"] for row in changes(source)] == [1]
    return source


def changes(source: PostgresRows) -> list[dict[str, Any]]:
    """The rows of the next slice that has any."""
    found: list[dict[str, Any]] = []

    def look() -> bool:
        slice = source.available()
        found.extend([] if slice is None else source.table(slice).to_pylist())
        return bool(found)

    until(look, 60)
    return found


@pytest.mark.parametrize(("change", "words"), [
    ("alter table {} alter column x type text", "another type of x"),
    ("alter table {} add column y int", "gained y"),
    ("alter table {} rename to {}_other", "is not in publication"),
    ("drop table {}", "is not in publication"),
    ("select pg_replication_slot_advance('{slot}', pg_current_wal_lsn())", "was moved to"),
])  # fmt: skip
def test_what_happens_to_a_table_or_a_slot_is_said(
    postgres_server: Postgres, table: str, slot: str, tmp_path: Path, change: str, words: str
) -> None:
    source = started(postgres_server, table, slot, tmp_path)
    postgres_server.query(f"insert into {table} values (2, 2)")
    assert [row["id"] for row in changes(source)] == [2]
    postgres_server.query(f"insert into {table} values (4, 4)")
    postgres_server.query(change.format(table, table, slot=slot))
    if postgres_server.query("select to_regclass(%s) is not null", table) == [(True,)]:
        postgres_server.query(f"insert into {table} values (3)")
    with pytest.raises(ns.Invalid, match=words):
        changes(source)
    source.close()


def test_a_slot_whose_log_the_database_has_given_up_is_lost(postgres_server: Postgres, table: str, slot: str, tmp_path: Path) -> None:
    source = started(postgres_server, table, slot, tmp_path)
    postgres_server.query("alter system set max_slot_wal_keep_size = '1MB'")
    postgres_server.query("select pg_reload_conf()")
    try:
        for _ in range(3):
            postgres_server.query(f"insert into {table} select i, i from generate_series(100, 200) i on conflict do nothing")
            postgres_server.query("select pg_switch_wal()")
        postgres_server.query("checkpoint")
        with pytest.raises(ns.Invalid, match="is lost: the database has given up its log"):
            changes(source)
    finally:
        postgres_server.query("alter system reset max_slot_wal_keep_size")
        postgres_server.query("select pg_reload_conf()")
        source.close()


def test_partitions_are_their_table_and_generated_columns_are_left_out(postgres_server: Postgres, slot: str, tmp_path: Path) -> None:
    table = f"t{uuid4().hex[:8]}"
    columns = "id int primary key, twice int generated always as (id * 2) stored"
    postgres_server.query(f"create table {table} ({columns}) partition by range (id)")
    for number in range(2):
        bounds = f"for values from ({number * 10}) to ({number * 10 + 10})"
        postgres_server.query(f"create table {table}_{number} partition of {table} {bounds}")
    postgres_server.query(f"insert into {table} values (1)")
    source = started(postgres_server, table, slot, tmp_path)
    postgres_server.query(f"insert into {table} values (2), (12)")
    assert changes(source) == [{"id": 2, "_diff": 1}, {"id": 12, "_diff": 1}]
    source.close()


@pytest.mark.connectors
def test_a_database_that_is_away_when_a_table_is_declared_is_an_error_that_says_when_to_come_back(
    postgres_server: Postgres, table: str, slot: str, tmp_path: Path
) -> None:
    source = started(postgres_server, table, slot, tmp_path)
    postgres_server.kill()
    with pytest.raises(ns.Unavailable) as refused:
        ns.postgres(postgres_server.url(), [table], slot)[table].declare("s", None)  # type: ignore[arg-type]
    assert "run again once it answers" in str(refused.value.hint)
    with pytest.raises(ns.Unavailable):
        changes(source)
    postgres_server.start()
    postgres_server.query(f"insert into {table} values (2, 2)")
    assert [row["id"] for row in changes(source)] == [2]
    source.close()
