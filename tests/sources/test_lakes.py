"""Tables of lakes as sources: the rows of now, then what each version changes; what moves rows only is nothing, what is lost is said."""

import json
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.taken import Marks, Taken
from nosync.sources.lake import LakeSource
from nosync.sources.lake_task import File, LakeTask

SCHEMA = pa.schema([("k", pa.string()), ("day", pa.date32()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def batch(*rows: tuple[str | None, int, int]) -> pa.Table:
    days = [(name, date(2026, 5, day), n, datetime(2026, 5, day, n % 24, tzinfo=UTC)) for name, day, n in rows]
    return pa.table([pa.array(list(values), column.type) for values, column in zip(zip(*days), SCHEMA)], schema=SCHEMA)


def counted(table: pa.Table) -> Counter[Any]:
    return Counter((row["k"], row["day"], row["n"], row["at"]) for row in table.to_pylist())


@pytest.mark.parametrize("names", [("keyed", "ice"), pytest.param(("delta", "fed", "ice", "keyed"), marks=pytest.mark.connectors)])
def test_a_view_over_tables_follows_whatever_their_writers_do(quick: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    uri, fed = f"{tmp_path}/a table", f"{tmp_path}/fed"
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    write_deltalake(uri, batch(("a", 1, 1), ("b", 1, 2)), partition_by=["day"])
    write_deltalake(fed, batch(("a", 1, 1)), configuration={"delta.enableChangeDataFeed": "true"})
    catalog = load_catalog("default", **properties)
    catalog.create_namespace("shop")
    ice = catalog.create_table("shop.t", SCHEMA)
    ice.append(batch(("a", 1, 1), ("b", 1, 2)))

    def flow() -> ns.Flow:
        flow = ns.Flow("lakes", quick)
        tables: dict[str, tuple[Any, dict[str, Any]]] = {
            "delta": (ns.delta(uri, maxBytesPerTrigger=1), {}),
            "fed": (ns.delta(fed), {"checked": False}),
            "ice": (ns.iceberg(properties, "shop.t"), {"checked": False}),
            "keyed": (ns.delta(uri), {"key": ["k", "day"]}),
        }
        for name in names:
            source, more = tables[name]
            flow.view(f"{name}_rows", flow.source(name, source, **more))
        return flow

    def check(run: ns.Run) -> None:
        run.processAllAvailable()
        truth = {name: DeltaTable(place).to_pyarrow_table() for name, place in (("delta", uri), ("fed", fed))}
        truth["ice"] = catalog.load_table("shop.t").scan().to_arrow()
        for name in names:
            found = run.view(f"{name}_rows").toArrow()
            assert counted(found.cast(SCHEMA)) == counted(truth[name if name != "keyed" else "delta"]), name

    with flow().start(tmp_path / "home", shards=1) as run:
        check(run)
        write_deltalake(uri, batch(("c", 2, 3), (None, 1, 4)), mode="append")
        DeltaTable(uri).delete("k = 'b'")
        merge = DeltaTable(fed).merge(batch(("a", 1, 9), ("z", 2, 1)), "t.k = s.k", "s", "t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        ice.append(batch(("c", 2, 3)))
        ice.delete("k = 'b'")
        check(run)
    epochs = run.epoch
    DeltaTable(uri).optimize.compact()
    DeltaTable(uri).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with flow().start(tmp_path / "home") as run:
        check(run)
        assert run.epoch == epochs  # files were moved, rows were not
        if len(names) < 4:
            return
        DeltaTable(uri).update(updates={"n": "n + 1"}, predicate="day = '2026-05-01'")
        DeltaTable(fed).delete()
        ice.overwrite(batch(("y", 3, 7)))
        check(run)


def started(uri: Any, latest: dict[str, Any] | None = None, **more: Any) -> LakeSource:
    source = ns.delta(uri, **more)
    source.declare("s", None)  # type: ignore[arg-type]
    source.start(Path(), Taken(lambda: [latest] if latest else [], latest, Marks()))
    return source


def test_a_slice_is_plain_and_bounded_and_a_restart_goes_on_behind_it(tmp_path: Path) -> None:
    for n in range(3):
        write_deltalake(tmp_path, batch(("a", 1, n)), mode="append")
    source, found = started(tmp_path, maxBytesPerTrigger=1), []
    while (slice := source.available()) is not None:
        found.append(json.loads(json.dumps(slice)))
        source = started(tmp_path, found[-1], maxBytesPerTrigger=1)
    assert [(slice["version"], slice["left"], len(slice["files"])) for slice in found] == [(2, 2, 1), (2, 1, 1), (2, 0, 1)]
    write_deltalake(tmp_path, batch(("b", 1, 1)), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    assert [(slice["version"], [file[2] for file in slice["files"]]) for slice in iter(source.available, None)] == [(3, [1])]


def test_what_is_lost_or_changed_is_said(tmp_path: Path) -> None:
    write_deltalake(tmp_path, batch(("a", 1, 1)))
    write_deltalake(tmp_path, batch(("b", 1, 1)), mode="append")
    source = started(tmp_path, {"version": 0, "left": 0}, appendOnly=True)
    DeltaTable(tmp_path).delete("k = 'a'")
    with pytest.raises(ns.Invalid, match="takes rows back"):
        source.available()
    source = started(tmp_path, {"version": 0, "left": 0})
    write_deltalake(tmp_path, batch(("b", 1, 1)).append_column("more", pa.array([1])), mode="append", schema_mode="merge")
    with pytest.raises(ns.Failed, match='"more" is new'):
        source.available()
    DeltaTable(tmp_path).create_checkpoint()
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    for left in (0, 1):
        with pytest.raises(ns.Failed, match="has lost what followed version 0"):
            started(tmp_path, {"version": 0, "left": left}).available()
    with pytest.raises(ns.Invalid, match="there is no Delta table"):
        started(tmp_path / "nowhere")


def test_an_expired_snapshot_of_iceberg_is_said(tmp_path: Path) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    catalog = load_catalog("default", **properties)
    catalog.create_namespace("shop")
    table, snapshots = catalog.create_table("shop.t", SCHEMA), []
    for n in range(4):
        table.append(batch(("a", 1, n)))
        snapshots.append(table.current_snapshot().snapshot_id)

    def source(version: int, left: int = 0) -> LakeSource:
        made, latest = ns.iceberg(properties, "shop.t"), {"version": version, "left": left}
        made.declare("s", None)  # type: ignore[arg-type]
        made.start(Path(), Taken(lambda: [latest], latest, Marks()))
        return made

    table.maintenance.expire_snapshots().by_ids(snapshots[:2]).commit()
    for version, left in ((snapshots[0], 0), (snapshots[0], 1)):
        with pytest.raises(ns.Failed, match=r"Iceberg table \"shop.t\" has lost what followed version") as lost:
            source(version, left).available()
        assert "Begin on a new home, with the rows of now" in str(lost.value)
    found = source(snapshots[2]).available()
    assert found is not None and found["version"] == snapshots[3] and [file[2] for file in found["files"]] == [1]


def read(source: LakeSource, slice: dict[str, Any]) -> list[dict[str, Any]]:
    """As a task does it."""
    task = LakeTask(source._opener(), (tuple(File(*entry) for entry in slice["files"]),), source.arrow, source.what)
    return pa.Table.from_batches(task([pa.RecordBatch.from_pydict({"id": [0]})])).to_pylist()


def test_values_of_partitions_are_read_as_they_were_and_a_vacuumed_file_is_said(tmp_path: Path) -> None:
    kinds = {
        "text": (pa.string(), "a b/ü%=:", "c"), "day": (pa.date32(), date(2026, 5, 1), None), "n": (pa.int32(), -1, 2),
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 5, 1, 1, 2, 3, 4, UTC), datetime(1999, 1, 1, tzinfo=UTC)),
        "naive": (pa.timestamp("us"), datetime(2026, 5, 1, 1, 2, 3), None), "flag": (pa.bool_(), True, False),
        "exact": (pa.decimal128(9, 2), Decimal("1.50"), Decimal("-2.00")), "small": (pa.int8(), -1, None),
    }  # fmt: skip
    table = pa.table({"x": [1, 2]} | {name: pa.array(values, kind) for name, (kind, *values) in kinds.items()})
    write_deltalake(tmp_path, table.slice(0, 1), partition_by=list(kinds))
    source = started(tmp_path)
    first = source.available()
    write_deltalake(tmp_path, table.slice(1), mode="append")
    second = source.available()
    assert first is not None and second is not None
    found = [{name: row[name] for name in table.column_names} for slice in (first, second) for row in read(source, slice)]
    assert found == table.to_pylist()
    DeltaTable(tmp_path).delete()
    DeltaTable(tmp_path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(ns.NosyncError, match="is gone: vacuum took it"):
        read(source, second)
