"""Tables of PostgreSQL as sources: a snapshot and every change behind it, transactions whole, over kills of the database and restarts."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.sources.pgoutput import position, spelled
from tests.crash.waiting import until
from tests.servers.postgres import SECRET, Postgres


@pytest.fixture
def slot(postgres_server: Postgres) -> Iterator[str]:
    name = f"s{uuid4().hex[:8]}"
    yield name
    postgres_server.query("select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", name)


@pytest.fixture
def tables(postgres_server: Postgres) -> tuple[str, str]:
    suffix = uuid4().hex[:8]
    customers, orders = f"c{suffix}", f"o{suffix}"
    postgres_server.query(f"create table {customers} (id int primary key, city text, vip boolean)")
    postgres_server.query(f"create table {orders} (customer int, price numeric(9,2))")
    postgres_server.query(f"alter table {orders} replica identity full")
    return customers, orders


def test_positions_are_numbers() -> None:
    assert spelled(position("16/B374D848")) == "16/B374D848"


def test_views_follow_the_tables_over_kills_and_restarts(
    quick: SparkSession, postgres_server: Postgres, slot: str, tables: tuple[str, str], tmp_path: Path
) -> None:
    """Random transactions; the order of each customer is in the epoch of the customer."""
    customers, orders = tables
    home, chance = tmp_path / "home", random.Random(7)
    postgres_server.query(f"insert into {customers} select i, 'city ' || i, null from generate_series(1, 5) i")
    postgres_server.query(f"insert into {orders} select i, i from generate_series(1, 5) i")

    def flow() -> ns.Flow:
        flow, db = ns.Flow("follow", quick), ns.postgres(postgres_server.url(), list(tables), slot)
        rows = flow.source("customers", db[customers])
        spend = flow.source("orders", db[orders]).groupBy("customer").agg(F.sum("price").alias("spent"), F.count("*").alias("n"))
        flow.view("spend", spend)
        flow.view("joined", rows.join(spend, rows["id"] == spend["customer"]).select("id", "city", "vip", "spent", "n"))
        flow.view("orphans", spend.join(rows, rows["id"] == spend["customer"], "left_anti"))
        return flow

    truth = f"""select c.id, c.city, c.vip, o.spent, o.n from {customers} c
        join (select customer, sum(price) spent, count(*) n from {orders} group by 1) o on o.customer = c.id"""

    def follow(run: ns.Run) -> None:
        expected = sorted(postgres_server.query(truth), key=str)
        until(lambda: sorted(map(tuple, run.view("joined").collect()), key=str) == expected, 120, lambda: (run.status, expected))
        assert run.view("orphans").collect() == []

    def change() -> None:
        with psycopg.connect(postgres_server.url()) as connection:
            for _ in range(chance.randint(1, 4)):
                id = chance.randint(1, 9)
                upsert = f"insert into {customers} (id, city) values ({id}, 'x') on conflict (id) do update set city = 'y'"
                connection.execute(upsert)
                connection.execute(f"insert into {orders} values ({id}, {chance.randint(0, 99)})")
                if chance.random() < 0.4:
                    connection.execute(f"delete from {orders} where customer = {id}")
                    connection.execute(f"delete from {customers} where id = {id}")
                if chance.random() < 0.4:
                    moved = chance.randint(10, 19)
                    connection.execute(f"delete from {customers} where id = {moved}")
                    connection.execute(f"delete from {orders} where customer = {moved}")
                    if connection.execute(f"update {customers} set id = {moved} where id = {id}").rowcount:
                        connection.execute(f"update {orders} set customer = {moved} where customer = {id}")
            if chance.random() < 0.2:
                connection.rollback()

    with flow().start(home, shards=1) as run:
        follow(run)
        assert run.epoch == 1
        for _ in range(4):
            change()
        follow(run)
    for _ in range(4):
        change()
    with flow().start(home) as run:
        follow(run)
        postgres_server.kill()
        until(lambda: run.status.troubles, 60)
        postgres_server.start()
        for _ in range(3):
            change()
        follow(run)
        confirmed = "select confirmed_flush_lsn::text from pg_replication_slots where slot_name = %s"
        reached = max(slice["inner"]["lsn"] for slice in ns.open(home).image.opened[run.epoch].slices.values())
        until(lambda: position(postgres_server.query(confirmed, slot)[0][0]) >= reached, 30)
        assert SECRET not in str(run.status)
    postgres_server.query(f"alter table {customers} add column name text default 'n'")
    postgres_server.query(f"insert into {customers} values (99, 'z', false, 'new')")
    program = flow()
    postgres_server.query(f"alter table {customers} drop column vip")
    postgres_server.query(f"update {customers} set city = 'w' where id = 99")
    with pytest.raises(ns.Invalid, match="lost vip since the flow was declared"), program.start(home, on_change="rebuild") as run:
        run.processAllAvailable()
    postgres_server.query("select pg_drop_replication_slot(%s)", slot)
    with pytest.raises(ns.Invalid, match="is gone"), program.start(home, on_change="rebuild") as run:
        run.processAllAvailable()


def test_every_type_comes_as_it_is_in_the_snapshot_and_in_changes(
    quick: SparkSession, postgres_server: Postgres, slot: str, tmp_path: Path
) -> None:
    table = f"t{uuid4().hex[:8]}"
    columns = {
        "b bool": True, "s int2": -1, "l int8": 2**63 - 1, "f float8": 0.1 + 0.2, "r float4": 0.5,
        "n numeric(38,10)": Decimal("1.0000000001"),
        "free numeric": "123456789012345678901234567890.5",
        "t text": "ä 'q'\n", "d date": date(1582, 10, 15), "x bytea": b"\x00\xff",
        "c char(3)": "a  ",
        "at timestamptz": datetime(2026, 3, 29, 1, 30, 0, 1, UTC), "naive timestamp": datetime(2026, 3, 29, 2, 30, 0, 500000),
        "u uuid": "0123abcd-0123-4567-89ab-0123456789ab", "j jsonb": '{"a": 1}', "list int[]": "{1,NULL}",
    }  # fmt: skip
    postgres_server.query(f"create table {table} (id int primary key, {', '.join(columns)})")
    places = ", ".join(["%s"] * len(columns))
    for id in (1, 3):
        postgres_server.query(f"insert into {table} values ({id}, {places})", *columns.values())
    flow, db = ns.Flow("types", quick), ns.postgres(postgres_server.url(), [table], slot)
    flow.view("v", flow.source("s", db[table]))
    with flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        postgres_server.query(f"insert into {table} values (2, {places})", *columns.values())
        postgres_server.query(f"delete from {table} where id = 3")
        postgres_server.query(f"insert into {table} (id) values (4)")
        until(lambda: {row.id for row in run.view("v").collect()} == {1, 2, 4}, 60, lambda: run.status)
        found = {row.id: tuple(row)[1:] for row in run.view("v").collect()}
        expected = [value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in columns.values()]
        expected = [bytearray(value) if isinstance(value, bytes) else value for value in expected]
        assert list(found[1]) == list(found[2]) == expected
        assert found[4] == (None,) * len(columns)
    postgres_server.query(f"truncate {table}")
    again = ns.Flow("types", quick)
    again.view("v", again.source("s", ns.postgres(postgres_server.url(), [table], slot)[table]))
    with pytest.raises(ns.NosyncError, match="was truncated"), again.start(tmp_path / "home") as run:
        run.processAllAvailable()


@pytest.mark.parametrize("wrong", ["table", "key", "password", "slot", "other"])
def test_what_cannot_be_read_says_so(quick: SparkSession, postgres_server: Postgres, slot: str, tmp_path: Path, wrong: str) -> None:
    table = f"t{uuid4().hex[:8]}"
    url = postgres_server.url(secret="secret-word") if wrong == "password" else postgres_server.url()
    if wrong != "table":
        postgres_server.query(f"create table {table} (id int {'' if wrong == 'key' else 'primary key'})")
    if wrong == "slot":
        postgres_server.query("select pg_create_logical_replication_slot(%s, 'pgoutput')", slot)
    words = {"table": "is not there", "key": "no primary key", "password": "password authentication", "slot": "is there already"}
    with pytest.raises(ns.Invalid, match=words.get(wrong, "not one of those")) as failure:
        flow, db = ns.Flow("wrong", quick), ns.postgres(url, [table], slot)
        flow.view("v", flow.source("s", db["other" if wrong == "other" else table]))
        with flow.start(tmp_path / "home", shards=1) as run:
            run.processAllAvailable()
    assert "secret-word" not in str(failure.value)
