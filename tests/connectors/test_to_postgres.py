"""A table of PostgreSQL as a sink: each epoch once, whatever is killed, all types to the bit, and nobody else's table."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import nosync as ns
from nosync.sinks.postgres import PostgresTable
from tests.connectors.rows import IDENTITY, changes
from tests.servers.postgres import SECRET, Postgres

EXACT = Decimal("12345678901234567890.000000000000000001")
TOTALS = {"k": pa.string(), "n": pa.int64()}


@pytest.fixture
def table(postgres_server: Postgres) -> str:
    return f"t{uuid4().hex[:8]}"


def opened(server: Postgres, table: str, key: Any = "k", run: str = "1.a", identity: ns.Identity = IDENTITY) -> PostgresTable:
    sink = ns.to_postgres(server.url(), table, key=key)
    sink.open(run, identity)
    return sink


def test_rows_are_upserted_and_deleted_and_an_epoch_counts_once(postgres_server: Postgres, table: str) -> None:
    sink = opened(postgres_server, table)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1), ("b", 2, 1), (None, 3, 1)))
    second = changes(2, TOTALS, ("a", 1, -1), ("a", 5, 1), ("b", 2, -1), (None, 3, -1), ("", 7, 1))
    for _ in range(2):
        sink.deliver(2, second)
    sink.deliver(1, changes(1, TOTALS, ("z", 1, 1)))
    assert postgres_server.query(f"select * from {table} order by k") == [("", 7), ("a", 5)]
    sink.close()
    again = opened(postgres_server, table, run="2.b")
    again.deliver(2, second)
    again.deliver(3, changes(3, TOTALS))
    assert postgres_server.query(f"select epoch, generation from nosync_outputs where target = '{table}'") == [(3, 2)]
    assert postgres_server.query(f"select * from {table} order by k") == [("", 7), ("a", 5)]
    again.close()


def test_an_epoch_without_changes_is_no_transaction(postgres_server: Postgres, table: str) -> None:
    def epoch() -> Any:
        return postgres_server.query(f"select epoch from nosync_outputs where target = '{table}'")

    sink = opened(postgres_server, table)
    sink.deliver(1, changes(1, TOTALS))
    sink.deliver(2, changes(2, TOTALS))
    assert epoch() == [(1,)]  # the first one makes the table
    sink.deliver(3, changes(3, TOTALS, ("a", 1, 1)))
    assert epoch() == [(3,)] and postgres_server.query(f"select * from {table}") == [("a", 1)]
    sink.close()


def test_every_type_arrives_as_it_is(postgres_server: Postgres, table: str) -> None:
    types: dict[str, tuple[pa.DataType, Any, Any]] = {
        "bool": (pa.bool_(), True, True),
        "small": (pa.int8(), -128, -128),
        "big": (pa.int64(), -(2**63), -(2**63)),
        "real": (pa.float32(), 0.5, 0.5),
        "double": (pa.float64(), 0.1 + 0.2, 0.1 + 0.2),
        "infinite": (pa.float64(), float("-inf"), float("-inf")),
        "decimal": (pa.decimal128(38, 18), EXACT, EXACT),
        "text": (pa.string(), 'a "quoted", line\nand \\. ü', 'a "quoted", line\nand \\. ü'),
        "bytes": (pa.binary(), b"\x00\xff", b"\x00\xff"),
        "date": (pa.date32(), date(1582, 10, 15), date(1582, 10, 15)),
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 3, 29, 1, 30, 0, 1, UTC), datetime(2026, 3, 29, 1, 30, 0, 1, UTC)),
        "naive": (pa.timestamp("us"), datetime(2026, 3, 29, 2, 30), datetime(2026, 3, 29, 2, 30)),
        "list": (pa.list_(pa.int32()), [1, None], [1, None]),
        "struct": (pa.struct([("x", pa.string())]), {"x": "ä"}, {"x": "ä"}),
        "Odd \"name\"": (pa.map_(pa.string(), pa.int64()), [("k", 1)], {"k": 1}),
    }  # fmt: skip
    columns = {"id": pa.int32()} | {name: type for name, (type, _, _) in types.items()}
    sink = opened(postgres_server, table, key="id")
    given = [value for _, value, _ in types.values()]
    sink.deliver(1, changes(1, columns, (1, *given, 1), (2, *[None] * len(types), 1)))
    [[_, *found], [_, *nulls]] = postgres_server.query(f"select * from {table} order by id")
    assert found == [expected for _, _, expected in types.values()]
    assert nulls == [None] * len(types)
    sink.close()


def test_a_newer_run_shuts_an_older_one_out(postgres_server: Postgres, table: str) -> None:
    old, new = opened(postgres_server, table, run="3.a"), opened(postgres_server, table, run="4.b")
    with pytest.raises(ns.Fenced):
        old.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    new.deliver(1, changes(1, TOTALS, ("a", 2, 1)))
    with pytest.raises(ns.Fenced):
        opened(postgres_server, table, run="3.a")
    assert postgres_server.query(f"select * from {table}") == [("a", 2)]
    new.close()


def test_a_database_that_is_killed_is_waited_for_and_has_each_epoch_once(postgres_server: Postgres, table: str) -> None:
    sink = opened(postgres_server, table)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    postgres_server.kill()
    second = changes(2, TOTALS, ("a", 1, -1), ("a", 2, 1))
    with pytest.raises(ns.Unavailable, match=table) as failure:
        sink.deliver(2, second)
    later = opened(postgres_server, table, run="2.b")  # a start does not wait for the database
    with pytest.raises(ns.Unavailable) as refused:
        later.deliver(2, second)
    assert SECRET not in str(failure.value) + str(refused.value)
    postgres_server.start()
    later.deliver(2, second)
    assert postgres_server.query(f"select * from {table}") == [("a", 2)]
    later.close()


@pytest.mark.parametrize("wrong", ["password", "database", "flow", "home", "rows", "address"])
def test_what_a_start_can_know_is_refused_at_the_start(postgres_server: Postgres, table: str, wrong: str) -> None:
    url, identity = postgres_server.url(), IDENTITY
    if wrong in ("flow", "home"):
        opened(postgres_server, table).close()
    match wrong:
        case "password":
            url = postgres_server.url(secret="another-word")
        case "database":
            url = postgres_server.url(database="nowhere")
        case "flow":
            identity = ns.Identity("other", "out", "1.first")
        case "home":
            identity = ns.Identity("flow", "out", "1.other")
        case "rows":
            postgres_server.query(f"create table {table} (k text)")
            postgres_server.query(f"insert into {table} values ('a')")
        case "address":
            url = "postgresql//user:secret-word@host"
    with pytest.raises(ns.Invalid, match=table) as failure:
        ns.to_postgres(url, table, key="k").open("1.a", identity)
    assert "word" not in str(failure.value).replace("password authentication", "")


def test_what_an_epoch_shows_to_be_wrong_names_the_way_out(postgres_server: Postgres, table: str) -> None:
    wrong = [
        ("no key", None, ((("a", 1, -1)),), "no key to find them by"),
        ("half a key", "n", (("a", 1, 1), ("b", 1, 1)), "does not tell the rows"),
        ("unknown", "x", (("a", 1, 1),), "is no column of the query"),
    ]
    for number, (_, key, rows, words) in enumerate(wrong):
        sink = opened(postgres_server, f"{table}_{number}", key=key)
        with pytest.raises(ns.Failed, match=words):
            sink.deliver(1, changes(1, TOTALS, *rows))
        sink.close()
    postgres_server.query(f"create table {table} (k text, other int)")
    sink = opened(postgres_server, table)
    with pytest.raises(ns.Failed, match='has no column "n"'):
        sink.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    postgres_server.query(f"alter table {table} add column n smallint")
    with pytest.raises(ns.Failed, match="has no unique index"):
        sink.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    postgres_server.query(f"create unique index on {table} (k)")
    with pytest.raises(ns.Failed, match="smallint"):
        sink.deliver(1, changes(1, TOTALS, ("a", 1 << 40, 1)))
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    assert postgres_server.query(f"select k, n from {table}") == [("a", 1)]
    sink.deliver(2, changes(2, TOTALS, ("a", 2, 1), (None, 3, 1)))  # as after a start that began empty
    sink.deliver(3, changes(3, TOTALS, (None, 3, -1), (None, 4, 1), ("a", 2, -1), ("a", 7, 1), ("b", 5, 1)))
    assert set(postgres_server.query(f"select k, n from {table}")) == {("a", 7), (None, 4), ("b", 5)}
    sink.close()


def test_without_a_key_rows_are_added_as_often_as_they_come(postgres_server: Postgres, table: str) -> None:
    sink = opened(postgres_server, table, key=None)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 2), ("b", 1, 1)))
    assert postgres_server.query(f"select * from {table} order by k") == [("a", 1), ("a", 1), ("b", 1)]
    sink.close()
