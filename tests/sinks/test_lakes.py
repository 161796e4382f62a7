"""Tables of lakes as sinks: each epoch once, whatever is killed or raced, all types as they are, and nobody else's table."""

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from tests.connectors.rows import IDENTITY, changes
from tests.sinks.lakes import TOTALS, Delta, Iceberg, Place, opened, rows


@pytest.fixture(params=["delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    folder = tmp_path / "a lake"
    folder.mkdir()
    return Delta(folder) if request.param == "delta" else Iceberg(folder)


def test_rows_are_upserted_and_deleted_and_an_epoch_counts_once(place: Place) -> None:
    sink = opened(place)
    assert rows(place) == []
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1), ("b", 2, 1), (None, 3, 1)))
    second = changes(2, TOTALS, ("a", 1, -1), ("a", 5, 1), ("b", 2, -1), (None, 3, -1), ("", 7, 1))
    for _ in range(2):
        sink.deliver(2, second)
    sink.deliver(1, changes(1, TOTALS, ("z", 1, 1)))
    assert rows(place) == [("", 7), ("a", 5)]
    versions = place.versions()
    again = opened(place, run="2.b")
    again.deliver(2, second)
    again.deliver(3, changes(3, TOTALS))
    again.deliver(4, changes(4, TOTALS, ("a", 9, 1)))  # as after a start that began empty
    assert rows(place) == [("", 7), ("a", 9)]
    assert place.versions() == versions + 2  # the run's claim, and epoch 4
    assert again.table.epoch(IDENTITY) == 4


def test_a_run_that_was_replaced_never_gets_in(place: Place) -> None:
    old = opened(place, run="3.a")
    old.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    removed, late = old._moves(2, old._rows(changes(2, TOTALS, ("late", 1, 1)).table()))
    new = opened(place, run="4.b")
    assert not old.table.commit(removed, late, IDENTITY, "3.a", 2)  # its version was taken while it was writing files
    with pytest.raises(ns.Fenced):
        old.deliver(2, changes(2, TOTALS, ("a", 2, 1)))
    new.deliver(2, changes(2, TOTALS, ("b", 2, 1)))
    with pytest.raises(ns.Fenced):
        opened(place, run="3.a")
    assert rows(place) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_commit_neither_loses_nor_doubles(place: Place, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(place, key=None)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 2)))
    commit = sink.table.commit

    def dying(*given: Any) -> bool:
        if when == "after":
            commit(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(sink.table, "commit", dying)
    second = changes(2, TOTALS, ("a", 1, -1), ("b", 1, 1))
    with pytest.raises(KeyboardInterrupt):
        sink.deliver(2, second)
    later = opened(place, key=None, run="2.b")
    later.deliver(2, second)
    later.deliver(3, changes(3, TOTALS, ("c", 1, 1)))
    assert rows(place) == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("seed", [0, 3])
def test_random_changes_under_folding_and_forgetting_equal_the_truth(place: Place, seed: int) -> None:
    print(f"seed {seed}")
    chance, truth = random.Random(seed), Counter[tuple[Any, ...]]()
    columns = {"k": pa.string(), "day": pa.date32(), "n": pa.int64()}
    keyed, parts = seed % 2 == 0, ["k"] if seed < 2 else []
    days = [date(2026, 5, 1), date(2026, 5, 2), None]
    keys = {name: chance.choice(days) for name in [*"abcdefgh", None, "ü/ %"]}
    for epoch in range(1, 13):
        if epoch % 5 == 1:
            sink = opened(place, "k" if keyed else None, f"{epoch}.r", IDENTITY, columns, partitionBy=parts)
        diffs = Counter[tuple[Any, ...]]()
        for name in chance.sample(list(keys), 4):
            for row in [row for row in truth if row[0] == name]:
                diffs[row] -= truth[row] if keyed else chance.randint(0, truth[row])
            if chance.random() < 0.8:
                diffs[(name, keys[name], chance.randint(0, 3))] += 1 if keyed else chance.randint(1, 3)
        truth.update(diffs)
        truth = Counter({row: count for row, count in truth.items() if count})
        sink.deliver(epoch, changes(epoch, columns, *[(*row, diff) for row, diff in diffs.items() if diff]))
        if epoch % 7 == 0:
            place.forget()
        if epoch % 6 == 0:
            place.compact()
        if epoch % 3 == 0:
            found = Counter((row["k"], row["day"], row["n"]) for row in place.read().to_pylist())
            assert found == truth, f"epoch {epoch}"


def test_every_type_arrives_as_it_is(place: Place) -> None:
    types: dict[str, tuple[pa.DataType, Any]] = {
        "bool": (pa.bool_(), True), "small": (pa.int8(), -128), "short": (pa.int16(), 7), "big": (pa.int64(), -(2**63)),
        "real": (pa.float32(), 0.5), "double": (pa.float64(), 0.1 + 0.2), "infinite": (pa.float64(), float("-inf")),
        "decimal": (pa.decimal128(38, 18), Decimal("12345678901234567890.000000000000000001")), "text": (pa.string(), 'a "ü"\n'),
        "bytes": (pa.binary(), b"\x00\xff"), "date": (pa.date32(), date(1582, 10, 15)),
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 3, 29, 1, 30, 0, 1, UTC)),
        "naive": (pa.timestamp("us"), datetime(2026, 3, 29, 2, 30)), "list": (pa.list_(pa.int32()), [1, None]),
        "struct": (pa.struct([("x", pa.string())]), {"x": "ä"}), "map": (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
    }  # fmt: skip
    columns = {"id": pa.int32()} | {name: type for name, (type, _) in types.items()}
    given = [value for _, value in types.values()]
    sink = opened(place, "id", columns=columns)
    sink.deliver(1, changes(1, columns, (1, *given, 1), (2, *[None] * len(types), 1)))
    sink.deliver(2, changes(2, columns, (5, *given, 1)))
    table = place.read().sort_by("id").to_pylist()
    assert [list(row.values())[1:] for row in table] == [given, [None] * len(types), given]
    source = DeltaTable(f"{place.uri}/spend").to_pyarrow_dataset() if isinstance(place, Delta) else place.read()
    with duckdb.connect() as db:
        assert db.execute("select id from source where id > 2 and date < date '1600-01-01'").fetchall() == [(5,)]
    assert source is not None
    whole = place.sink("whole")
    whole.open("1.a", IDENTITY)
    whole.deliver(1, changes(1, columns, (1, *given, 1)))
    whole.deliver(2, changes(2, columns, (1, *given, -1), (2, *given, 1)))
    assert place.read("whole").column("id").to_pylist() == [2]


def test_files_of_delta_say_what_readers_skip_by(tmp_path: Path) -> None:
    sink = opened(Delta(tmp_path))
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1), ("b" * 50, 2, 1)))
    sink.deliver(2, changes(2, TOTALS, ("c", 5, 1)))
    stats = pa.table(DeltaTable(tmp_path / "spend").get_add_actions(flatten=True)).to_pylist()
    found = sorted((file["min.n"], file["max.n"], file["min.k"], file["max.k"], file["num_records"]) for file in stats)
    assert found == [(1, 2, None, None, 2), (5, 5, "c", "c", 1)]


@pytest.mark.parametrize("mode", ["changes", "append"])
def test_logs_of_changes_are_partitioned_and_folded(place: Place, mode: Any) -> None:
    sink = opened(place, None, mode=mode, partitionBy="k", fold_after=3)
    for epoch in range(1, 6):
        sink.deliver(epoch, changes(epoch, TOTALS, ("a b/ü%", epoch, 2), ("", epoch, 1)))
    found = place.read()
    assert {"OPTIMIZE", "replace"} & {*place.kinds()}
    assert Counter(found.column("k").to_pylist()) == ({"a b/ü%": 5, None: 5} if mode == "changes" else {"a b/ü%": 10, None: 5})
    assert ("_diff" in found.column_names) == (mode == "changes")
    opened(place, None, "2.b", mode=mode, partitionBy="k").deliver(6, changes(6, TOTALS, ("c", 6, 1)))


def test_small_files_are_folded_by_the_clock(place: Place) -> None:
    sink, now = opened(place, None, mode="append", fold_after=0, fold_every="1 hour"), [0.0]
    sink.clock = lambda: now[0]
    sink.open("2.b", IDENTITY)
    for epoch, at in enumerate([0.0, 3599.0, 3600.0, 7199.0], start=1):
        now[0] = at
        sink.deliver(epoch, changes(epoch, TOTALS, ("a", epoch, 1)))
    assert [kind for kind in place.kinds() if kind in ("OPTIMIZE", "replace")] in (["OPTIMIZE"], ["replace"])
    assert rows(place) == [("a", epoch) for epoch in range(1, 5)]
    with pytest.raises(ns.Invalid, match="fold_every"):
        place.sink(fold_every="often")


def test_readers_see_whole_epochs_while_the_sink_writes(place: Place) -> None:
    """Each epoch moves an amount between two keys, in files that are replaced, folded and forgotten meanwhile."""
    columns, done, found = {"k": pa.string(), "n": pa.int64()}, threading.Event(), []

    def read() -> None:
        while not done.is_set():
            now_there = place.read()
            said = duckdb.connect().sql("SELECT count(*), sum(n)::int FROM now_there").fetchall()[0]
            found.append((said, now_there.column("n").to_pylist()))

    sink = opened(place, "k", columns=columns, fold_after=2)
    sink.deliver(1, changes(1, columns, ("a", 0, 1), ("b", 0, 1)))
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for epoch in range(2, 12):
                moved = epoch - 2, epoch - 1
                parts = [("a", moved[0], -1), ("a", moved[1], 1), ("b", -moved[0], -1), ("b", -moved[1], 1)]
                sink.deliver(epoch, changes(epoch, columns, *parts))
        finally:
            done.set()
        reading.result()
    assert {said for said, _ in found} == {(2, 0)} and len({tuple(sorted(values)) for _, values in found}) > 1


def test_what_others_did_to_the_rows_is_refused_and_what_moves_them_only_is_not(place: Place) -> None:
    sink = opened(place)
    sink.deliver(1, changes(1, TOTALS, ("a", 1, 1)))
    sink.deliver(2, changes(2, TOTALS, ("b", 1, 1)))
    place.compact()
    sink.deliver(3, changes(3, TOTALS, ("a", 2, 1)))
    place.append(pa.table({"k": ["x"], "n": [1]}))
    for other in (sink, place.sink(key="k")):
        with pytest.raises(ns.Failed, match=r"changed its rows.*(WRITE|append)"):
            other.open("2.b", IDENTITY)
            other.deliver(4, changes(4, TOTALS, ("c", 1, 1)))
    place.restore()
    again = opened(place, run="3.c")
    again.deliver(4, changes(4, TOTALS, ("c", 1, 1)))
    assert rows(place) == [("a", 2), ("b", 1), ("c", 1)]
    place.restore()  # to what was right an epoch ago
    with pytest.raises(ns.Failed):
        opened(place, run="4.d")


@pytest.mark.parametrize("wrong", ["flow", "home", "mode", "foreign", "columns"])
def test_another_ones_table_is_refused_at_the_start(place: Place, wrong: str) -> None:
    identity, mode = IDENTITY, "state"
    if wrong == "foreign":
        place.append(pa.table({"k": ["x"], "n": [1]}))
    else:
        opened(place, columns=TOTALS if wrong != "columns" else {"k": pa.string()})
    match wrong:
        case "flow":
            identity = ns.Identity("other", "out", "1.first")
        case "home":
            identity = ns.Identity("flow", "out", "1.other")
        case "mode":
            mode = "changes"
    with pytest.raises((ns.Invalid, ns.Failed), match="table"):
        opened(place, None, "2.b", identity, mode=mode)


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
    with pytest.raises(ns.Invalid, match="no name of a table"):
        ns.to_iceberg("shop", "spend")


def test_a_flow_keeps_tables_and_goes_on_after_a_restart(quick: SparkSession, tmp_path: Path) -> None:
    delta, iceberg = Delta(tmp_path / "delta"), Iceberg(tmp_path)

    def flow() -> tuple[ns.Flow, Any]:
        flow, given = ns.Flow("till", quick), ns.memory("item string, price double")
        spend = flow.view("spend", flow.source("orders", given).groupBy("item").agg(F.sum("price").alias("spent")))
        flow.sink("lake", spend, delta.sink(key="item"))
        flow.sink("ice", spend, iceberg.sink(key="item"))
        flow.sink("log", spend, delta.sink("log", mode="changes"))
        return flow, given

    for batches in ([[("tea", 3.5), ("pot", 20.0)], [("tea", 4.0)]], [[("cup", 2.0)]]):
        declared, given = flow()
        with declared.start(tmp_path / "home", shards=1) as run:
            for batch in batches:
                given.add(batch)
                run.processAllAvailable()
    assert declared.guarantees()["lake"].guarantee == declared.guarantees()["ice"].guarantee == "precise"
    assert rows(delta) == rows(iceberg) == [("cup", 2.0), ("pot", 20.0), ("tea", 7.5)]
    log = delta.read("log").sort_by([("_epoch", "ascending"), ("_diff", "ascending")]).to_pylist()
    assert [(row["_epoch"], row["item"], row["spent"], row["_diff"]) for row in log][2:] == [
        (2, "tea", 3.5, -1), (2, "tea", 7.5, 1), (3, "cup", 2.0, 1),
    ]  # fmt: skip
