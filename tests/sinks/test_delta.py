"""A Delta table as a sink: each epoch once, whatever is killed or raced, all types as they are, and nobody else's table."""

import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.sinks.delta import DeltaSink
from tests.connectors.rows import IDENTITY, changes

TOTALS = {"k": pa.string(), "n": pa.int64()}


def opened(uri: Any, key: Any = "k", run: str = "1.a", identity: ns.Identity = IDENTITY, columns: Any = TOTALS, **more: Any) -> DeltaSink:
    sink = ns.to_delta(uri, key=key, **more)
    sink.check_query("out", pa.schema(list(columns.items())), [])
    sink.open(run, identity)
    return sink


def rows(uri: Any) -> list[tuple[Any, ...]]:
    """As deltalake reads it."""
    found = DeltaTable(str(uri)).to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def test_rows_are_upserted_and_deleted_and_an_epoch_counts_once(tmp_path: Path) -> None:
    uri = tmp_path / "a table"
    sink = opened(uri)
    assert rows(uri) == []
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1), ("b", 2, 1), (None, 3, 1)))
    second = changes(2, TOTALS, ("a", 1, -1), ("a", 5, 1), ("b", 2, -1), (None, 3, -1), ("", 7, 1))
    for _ in range(2):
        sink.deliver(2, second)
    sink.deliver(1, changes(1, TOTALS, ("z", 1, 1)))
    assert rows(uri) == [("", 7), ("a", 5)]
    version = DeltaTable(uri).version()
    again = opened(uri, run="2.b")
    again.deliver(2, second)
    again.deliver(3, changes(3, TOTALS))
    again.deliver(4, changes(4, TOTALS, ("a", 9, 1)))  # as after a start that began empty
    assert rows(uri) == [("", 7), ("a", 9)]
    assert DeltaTable(uri).version() == version + 2  # the run's claim, and epoch 4
    assert DeltaTable(uri).transaction_version("nosync/flow/out/1.first") == 4


def test_a_run_that_was_replaced_never_gets_in(tmp_path: Path) -> None:
    old = opened(tmp_path, run="3.a")
    old.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    late = old._actions(2, old._rows(changes(2, TOTALS, ("late", 1, 1))))
    new = opened(tmp_path, run="4.b")
    assert not old._commit(late, old._app, 2)  # its version was taken while it was writing files
    with pytest.raises(ns.Fenced):
        old.deliver(2, changes(2, TOTALS, ("a", 2, 1)))
    new.deliver(2, changes(2, TOTALS, ("b", 2, 1)))
    with pytest.raises(ns.Fenced):
        opened(tmp_path, run="3.a")
    assert rows(tmp_path) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_commit_neither_loses_nor_doubles(tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(tmp_path, key=None)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 2)))
    commit = sink.lake.commit

    def dying(*given: Any) -> bool:
        if when == "after":
            commit(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(sink.lake, "commit", dying)
    second = changes(2, TOTALS, ("a", 1, -1), ("b", 1, 1))
    with pytest.raises(KeyboardInterrupt):
        sink.deliver(2, second)
    later = opened(tmp_path, key=None, run="2.b")
    later.deliver(2, second)
    later.deliver(3, changes(3, TOTALS, ("c", 1, 1)))
    assert rows(tmp_path) == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("seed", [0, 3])
def test_random_changes_in_small_files_with_folding_and_vacuum_equal_the_truth(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance, truth = random.Random(seed), Counter[tuple[Any, ...]]()
    columns = {"k": pa.string(), "day": pa.date32(), "n": pa.int64()}
    keyed, parts = seed % 2 == 0, ["day"] if seed < 2 else []
    days = [date(2026, 5, 1), date(2026, 5, 2), None]
    keys = {name: chance.choice(days) for name in [*"abcdefgh", None, "ü/ %"]}
    for epoch in range(1, 17):
        if epoch % 5 == 1:
            sink = opened(tmp_path, "k" if keyed else None, f"{epoch}.r", IDENTITY, columns, partitionBy=parts)
        diffs = Counter[tuple[Any, ...]]()
        for name in chance.sample(list(keys), 4):
            for row in [row for row in truth if row[0] == name]:
                diffs[row] -= truth[row] if keyed else chance.randint(0, truth[row])
            if chance.random() < 0.8:
                diffs[(name, keys[name], chance.randint(0, 3))] += 1 if keyed else chance.randint(1, 3)
        truth.update(diffs)
        truth = Counter({row: count for row, count in truth.items() if count})
        sink.deliver(epoch, changes(epoch, columns, *[(*row, diff) for row, diff in diffs.items() if diff]))
        table = DeltaTable(tmp_path)
        if epoch % 7 == 0:
            table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        if epoch % 6 == 0:
            table.optimize.compact()
        found = Counter((row["k"], row["day"], row["n"]) for row in DeltaTable(tmp_path).to_pyarrow_table().to_pylist())
        assert found == truth, f"epoch {epoch}"


def test_every_type_arrives_as_it_is_and_readers_skip_by_what_files_say(tmp_path: Path) -> None:
    types: dict[str, tuple[pa.DataType, Any]] = {
        "bool": (pa.bool_(), True), "small": (pa.int8(), -128), "short": (pa.int16(), 7), "big": (pa.int64(), -(2**63)),
        "real": (pa.float32(), 0.5), "double": (pa.float64(), 0.1 + 0.2), "infinite": (pa.float64(), float("-inf")),
        "decimal": (pa.decimal128(38, 18), Decimal("12345678901234567890.000000000000000001")), "text": (pa.string(), 'a "ü"\n'),
        "bytes": (pa.binary(), b"\x00\xff"), "date": (pa.date32(), date(1582, 10, 15)),
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 3, 29, 1, 30, 0, 1, UTC)),
        "naive": (pa.timestamp("us"), datetime(2026, 3, 29, 2, 30)), "list": (pa.list_(pa.int32()), [1, None]),
        "struct": (pa.struct([("x", pa.string())]), {"x": "ä"}),
        "map": (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
    }  # fmt: skip
    columns = {"id": pa.int32()} | {name: type for name, (type, _) in types.items()}
    sink = ns.to_delta(tmp_path, key="id")
    sink.open("1.a", IDENTITY)
    given = [value for _, value in types.values()]
    sink.deliver(1, changes(1, columns, (1, *given, 1), (2, *[None] * len(types), 1)))
    sink.deliver(2, changes(2, columns, (5, *given, 1)))
    table = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [list(row.values())[1:] for row in table] == [given, [None] * len(types), given]
    with duckdb.connect() as db:
        source = DeltaTable(tmp_path).to_pyarrow_dataset()
        assert db.execute("select id from source where id > 2 and date < date '1600-01-01'").fetchall() == [(5,)]
        assert source is not None
    stats = pa.table(DeltaTable(tmp_path).get_add_actions(flatten=True)).to_pylist()
    assert sorted((file["min.id"], file["max.id"], file["num_records"]) for file in stats) == [(1, 2, 2), (5, 5, 1)]
    whole = ns.to_delta(tmp_path / "whole")
    whole.open("1.a", IDENTITY)
    whole.deliver(1, changes(1, columns, (1, *given, 1)))
    whole.deliver(2, changes(2, columns, (1, *given, -1), (2, *given, 1)))
    assert [row["id"] for row in DeltaTable(tmp_path / "whole").to_pyarrow_table().to_pylist()] == [2]


@pytest.mark.parametrize("mode", ["changes", "append"])
def test_logs_of_changes_are_partitioned_and_folded(tmp_path: Path, mode: Any) -> None:
    sink = opened(tmp_path, None, mode=mode, partitionBy="k", fold_after=3)
    for epoch in range(1, 6):
        sink.deliver(epoch, changes(epoch, TOTALS, ("a b/ü%", epoch, 2), ("", epoch, 1)))
    table = DeltaTable(tmp_path)
    assert len(table.file_uris()) < 10 and any(entry["operation"] == "OPTIMIZE" for entry in table.history())
    found = Counter(row["k"] for row in table.to_pyarrow_table().to_pylist())
    assert found == ({"a b/ü%": 5, None: 5} if mode == "changes" else {"a b/ü%": 10, None: 5})
    assert ("_diff" in table.to_pyarrow_table().column_names) == (mode == "changes")


def test_what_others_did_to_the_rows_is_refused_and_what_moves_them_only_is_not(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    sink.deliver(2, changes(2, TOTALS, ("b", 1, 1)))
    DeltaTable(tmp_path).optimize.compact()
    sink.deliver(3, changes(3, TOTALS, ("a", 2, 1)))
    good = DeltaTable(tmp_path).version()
    write_deltalake(tmp_path, pa.table({"k": ["x"], "n": [1]}), mode="append")
    for other in (sink, ns.to_delta(tmp_path, key="k")):
        with pytest.raises(ns.Failed, match=f"version {good + 1} changed its rows.*WRITE"):
            other.open("2.b", IDENTITY)
            other.deliver(4, changes(4, TOTALS, ("c", 1, 1)))
    DeltaTable(tmp_path).restore(good)
    again = opened(tmp_path, run="3.c")
    again.deliver(4, changes(4, TOTALS, ("c", 1, 1)))
    assert rows(tmp_path) == [("a", 2), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("wrong", ["flow", "home", "mode", "foreign", "columns"])
def test_another_ones_table_is_refused_at_the_start(tmp_path: Path, wrong: str) -> None:
    identity, mode = IDENTITY, "state"
    if wrong == "foreign":
        write_deltalake(tmp_path, pa.table({"k": ["x"], "n": [1]}))
    elif wrong == "columns":
        sink = ns.to_delta(tmp_path)
        sink.check_query("out", pa.schema([("k", pa.string())]), [])
        sink.open("1.a", IDENTITY)
    else:
        opened(tmp_path)
    match wrong:
        case "flow":
            identity = ns.Identity("other", "out", "1.first")
        case "home":
            identity = ns.Identity("flow", "out", "1.other")
        case "mode":
            mode = "changes"
    with pytest.raises((ns.Invalid, ns.Failed), match="Delta table"):
        opened(tmp_path, None, "2.b", identity, mode=mode)


def test_what_a_declaration_can_know_is_refused_there() -> None:
    wrong: list[tuple[dict[str, Any], pa.DataType, str]] = [
        ({}, pa.duration("us"), "no interval"), ({}, pa.list_(pa.time64("us")), "no time of day"), ({"key": "y"}, pa.int64(), 'key="y"'),
        ({"partitionBy": "a b"}, pa.int64(), "has a name"), ({"mode": "append"}, pa.int64(), "takes back"),
    ]  # fmt: skip
    for given, kind, words in wrong:
        name = given.get("partitionBy", "x")
        with pytest.raises(ns.Invalid, match=words):
            ns.to_delta("t", **given).check_query("out", pa.schema([(name, kind), ("z", pa.int8())]), ["totals"])
    for uri in ("ftp://x/y", "s3://key:secret@bucket/x"):
        with pytest.raises(ns.Invalid):
            ns.to_delta(uri)
    with pytest.raises(ns.Invalid, match="replaces none"):
        ns.to_delta("t", key="k", mode="append")


def test_a_flow_keeps_a_table_while_it_is_read_and_goes_on_after_a_restart(quick: SparkSession, tmp_path: Path) -> None:
    def flow() -> tuple[ns.Flow, Any]:
        flow, given = ns.Flow("till", quick), ns.memory("item string, price double")
        spend = flow.view("spend", flow.source("orders", given).groupBy("item").agg(F.sum("price").alias("spent")))
        flow.sink("lake", spend, ns.to_delta(tmp_path / "spend", key="item"))
        flow.sink("log", spend, ns.to_delta(tmp_path / "log", mode="changes"))
        return flow, given

    for batches in ([[("tea", 3.5), ("pot", 20.0)], [("tea", 4.0)]], [[("cup", 2.0)]]):
        declared, given = flow()
        with declared.start(tmp_path / "home", shards=1) as run:
            for batch in batches:
                given.add(batch)
                run.processAllAvailable()
    assert declared.guarantees()["lake"].guarantee == "precise"
    assert rows(tmp_path / "spend") == [("cup", 2.0), ("pot", 20.0), ("tea", 7.5)]
    log = DeltaTable(tmp_path / "log").to_pyarrow_table().sort_by([("_epoch", "ascending"), ("_diff", "ascending")]).to_pylist()
    assert [(row["_epoch"], row["item"], row["spent"], row["_diff"]) for row in log][2:] == [
        (2, "tea", 3.5, -1), (2, "tea", 7.5, 1), (3, "cup", 2.0, 1),
    ]  # fmt: skip
