"""Sources: each file in exactly one epoch, in a stable order, over restarts; rows in memory; rows at a rate."""

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.taken import Marks, Taken

TEXTS = {
    "csv": lambda values: "".join(f"{x},n{x}\n" for x in values),
    "json": lambda values: "".join(f'{{"x": {x}, "name": "n{x}"}}\n' for x in values),
    "text": lambda values: "".join(f"n{x}\n" for x in values),
}


def slices_of(home: Path) -> list[dict[str, Any]]:
    """What was taken from source "s", epoch by epoch."""
    return [entry.slices["s"] for _, entry in sorted(ns.open(home).image.opened.items())]


def write(folder: Path, name: str, format: str, values: list[int]) -> Path:
    """Moves a file in whole; the order of names is the order of times."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden, path = folder / f".{name}", folder / name
    if format in TEXTS:
        hidden.write_text(TEXTS[format](values))
    else:
        table = pa.table({"x": pa.array(values, pa.int32()), "name": pa.array([f"n{x}" for x in values], pa.string())})
        (pq if format == "parquet" else orc).write_table(table, hidden)
    hidden.rename(path)
    return path


def flow_over(spark: SparkSession, source: Any, query: str = "select * from s") -> ns.Flow:
    flow = ns.Flow("files", spark)
    flow.source("s", source)
    flow.sql(f"create view v as {query}")
    return flow


def names(home: Path, at: int | None = None, view: str = "v") -> list[Any]:
    table = ns.open(home).view(view, at=at)
    return sorted(table.column("value" if "value" in table.schema.names else "name").to_pylist())


@pytest.mark.parametrize("format", ["parquet", "json", "csv", "text", "orc"])
def test_new_files_are_picked_up_while_running_and_after_a_restart(quick: SparkSession, tmp_path: Path, format: str) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    write(folder, "a", format, [1, 2])
    schema = None if format == "text" else "x int, name string"

    def flow() -> ns.Flow:
        return flow_over(quick, ns.files(folder, format=format, schema=schema))

    with flow().start(home=home, shards=2) as run:
        run.processAllAvailable()
        write(folder, "b", format, [3])
        write(folder, "c", format, [])
        run.processAllAvailable()
    with flow().start(home=home) as run:
        run.processAllAvailable()
        assert run.epoch in (2, 3)  # b and c came together or one after the other
        write(folder, "d", format, [4])
        run.processAllAvailable()
        assert sorted(row[-1] for row in run.view("v").collect()) == ["n1", "n2", "n3", "n4"]
    assert names(home, at=1) == ["n1", "n2"]
    taken = [file[0] for slice in slices_of(home) for file in slice["files"]]
    assert taken == ["a", "b", "c", "d"]


def test_one_file_an_epoch_goes_by_time_then_name(quick: SparkSession, tmp_path: Path) -> None:
    for name, modified in (("z", 1), ("b", 5), ("a", 5)):
        os.utime(write(tmp_path / "in", name, "text", [1]), (modified, modified))
    flow = flow_over(quick, ns.files(tmp_path / "in", format="text", maxFilesPerTrigger=1))
    flow.start(home=tmp_path / "home", trigger={"availableNow": True}).awaitTermination()
    slices = slices_of(tmp_path / "home")
    assert [[file[0] for file in slice["files"]] for slice in slices] == [["z"], ["a"], ["b"]]


def test_a_backlog_is_cut_by_bytes_but_an_epoch_takes_at_least_one_file(quick: SparkSession, tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "in", f"{number}", "text", [number] * (100 if number == 2 else 1))
    flow = flow_over(quick, ns.files(tmp_path / "in", format="text", maxBytesPerTrigger=6))
    flow.start(home=tmp_path / "home", trigger={"availableNow": True}).awaitTermination()
    slices = slices_of(tmp_path / "home")
    assert [len(slice["files"]) for slice in slices] == [2, 1, 1]


def test_the_byte_limit_has_a_default(tmp_path: Path) -> None:
    assert 0 < ns.files(tmp_path, schema="x int").max_bytes <= 1 << 30


def test_a_file_that_changes_before_its_epoch_is_computed_is_named(quick: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "in", "a", "csv", [1])
    source = ns.files(tmp_path / "in", format="csv", schema="x int, name string")
    source.declare("s", quick)
    source.start(tmp_path, Taken(list, None, Marks()))
    slice = source.available()
    assert slice is not None
    path.write_text("1,changed\n2,more\n")
    with pytest.raises(ns.Conflict) as error:
        source.read(quick, slice)
    assert str(path) in str(error.value).splitlines()[0] and "changed" in str(error.value)
    path.unlink()
    with pytest.raises(ns.Conflict, match="is gone"):
        source.read(quick, slice)


def test_partition_columns_come_from_the_path(quick: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in/day=2024-01-01", "a", "parquet", [1])
    write(tmp_path / "in/day=2024-01-02", "a", "parquet", [2, 3])
    flow = flow_over(
        quick, ns.files(tmp_path / "in", schema="x int, name string, day date"), "select cast(day as string) as name from s"
    )
    flow.start(home=tmp_path / "home", trigger={"availableNow": True}).awaitTermination()
    assert names(tmp_path / "home") == ["2024-01-01", "2024-01-02", "2024-01-02"]


def test_a_header_is_not_a_row(quick: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("x,name\n1,n1\n")
    flow = flow_over(quick, ns.files(tmp_path / "in", format="csv", schema="x int, name string", header=True))
    flow.start(home=tmp_path / "home", trigger={"availableNow": True}).awaitTermination()
    assert names(tmp_path / "home") == ["n1"]
    assert ns.open(tmp_path / "home").view("s.rejected").num_rows == 0


BAD = {
    "csv": ("1,n1\ntwo,n2\n3,n3,too,many\n4,n4\n", {"two,n2": 'x: "two" is no int', "3,n3,too,many": "expected 2 columns"}),
    "json": (
        '{"x": 1, "name": "n1"}\n{"x": "two", "name": "n2"}\nnot json\n{"x": 4, "name": "n4"}\n',
        {'{"x": "two", "name": "n2"}': 'x: "two" is no int', "not json": "not a JSON object"},
    ),
}


@pytest.mark.parametrize("format", BAD)
def test_rows_that_do_not_fit_are_kept_apart_with_the_reason(quick: SparkSession, tmp_path: Path, format: str) -> None:
    text, reasons = BAD[format]
    write(tmp_path / "in", "good", format, [9])
    flow = flow_over(quick, ns.files(tmp_path / "in", format=format, schema="x int, name string"))
    with flow.start(home=tmp_path / "home") as run:
        run.processAllAvailable()
        assert run.lastProgress and run.lastProgress["rejectedRows"] == 0
        (tmp_path / "in/.bad").write_text(text)
        (tmp_path / "in/.bad").rename(tmp_path / "in/bad")
        run.processAllAvailable()
        assert run.lastProgress["rejectedRows"] == 2
        assert run.lastProgress["sources"][0]["rejectedRows"] == 2
        live = run.view("s.rejected").count()
    rejected = ns.open(tmp_path / "home").view("s.rejected").to_pylist()
    assert names(tmp_path / "home") == ["n1", "n4", "n9"] and live == 2
    assert {row["raw"]: row["reason"] for row in rejected} == reasons
    assert all(row["file"].endswith("/in/bad") and row["epoch"] == 2 for row in rejected)
    assert ns.open(tmp_path / "home").status.rejected == {"s": 2}


@pytest.mark.parametrize("format", BAD)
def test_whether_a_row_fits_does_not_depend_on_the_query(quick: SparkSession, tmp_path: Path, format: str) -> None:
    write(tmp_path / "in", "good", format, [9])
    (tmp_path / "in/bad").write_text(BAD[format][0].splitlines()[1])
    flow = flow_over(quick, ns.files(tmp_path / "in", format=format, schema="x int, name string"), "select count(*) as value from s")
    flow.sql("create view names as select name from s")
    flow.start(home=tmp_path / "home", trigger={"availableNow": True}).awaitTermination()
    assert names(tmp_path / "home") == [1] and names(tmp_path / "home", view="names") == ["n9"]
    assert ns.open(tmp_path / "home").view("s.rejected").num_rows == 1


def test_a_file_that_is_no_parquet_is_set_aside(quick: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "good", "parquet", [9])
    (tmp_path / "in/bad").write_text("no parquet at all")
    os.utime(tmp_path / "in/bad", (1, 1))  # nobody writes it any more
    flow = flow_over(quick, ns.files(tmp_path / "in", schema="x int, name string"))
    with flow.start(home=tmp_path / "home") as run:
        run.processAllAvailable()
        assert run.lastProgress and run.lastProgress["rejectedRows"] == 1
    [row] = ns.open(tmp_path / "home").view("s.rejected").to_pylist()
    assert row["file"].endswith("/in/bad") and "not a Parquet file" in row["reason"]
    assert names(tmp_path / "home") == ["n9"]


def test_a_view_may_read_rejected_rows(quick: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/bad").write_text("two,n2\n3,n3\n")
    flow = ns.Flow("files", quick)
    flow.source("s", ns.files(tmp_path / "in", format="csv", schema="x int, name string"))
    flow.sql("create view good as select name from s")
    flow.sql("create view bad as select count(*) as value from `s.rejected`")
    flow.start(home=tmp_path / "home", trigger={"availableNow": True}).awaitTermination()
    assert names(tmp_path / "home", view="bad") == [1] and names(tmp_path / "home", view="good") == ["n3"]


def test_memory_makes_one_epoch_of_what_was_given_since_the_last(quick: SparkSession, tmp_path: Path) -> None:
    source = ns.memory("value int", removals=True)
    flow = flow_over(quick, source)
    source.add([(1,)])
    source.add([(2,), (2,)])
    with flow.start(home=tmp_path) as run:
        run.processAllAvailable()
        assert run.epoch == 1
        source.remove([(2,)])
        source.add([{"value": None}])
        run.processAllAvailable()
    assert names(tmp_path, at=1) == [1, 2, 2]
    assert ns.open(tmp_path).view("v", at=2).column(0).to_pylist().count(2) == 1


def test_memory_survives_a_restart(quick: SparkSession, tmp_path: Path) -> None:
    for number in (1, 2):
        source = ns.memory("value int")
        flow = flow_over(quick, source)
        with flow.start(home=tmp_path) as run:
            source.add([(number,)])
            run.processAllAvailable()
            assert run.epoch == number
    assert names(tmp_path) == [1, 2]


def test_rate_counts_without_gap_over_a_restart(quick: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        flow = flow_over(quick, ns.rate(rowsPerSecond=200), "select value from s")
        with flow.start(home=tmp_path) as run:
            reached = run.epoch
            deadline = time.monotonic() + 60
            while run.epoch < reached + 2 and time.monotonic() < deadline:
                run.awaitTermination(0.05)
    values = names(tmp_path)
    assert values == list(range(len(values))) and len(values) > 2


def test_a_static_table_comes_with_the_first_epoch(quick: SparkSession, tmp_path: Path) -> None:
    source = ns.memory("value bigint")
    flow = ns.Flow("static", quick)
    rows = flow.source("s", source)
    flow.view("v", rows.unionAll(quick.range(2).toDF("value")))
    with flow.start(home=tmp_path) as run:
        run.processAllAvailable()
        source.add([(7,)])
        run.processAllAvailable()
    assert names(tmp_path, at=1) in ([0, 1], [0, 1, 7]) and names(tmp_path) == [0, 1, 7]


@pytest.mark.parametrize("format", ["json", "text"])
def test_rows_are_counted_also_where_no_view_reads_the_source(quick: SparkSession, tmp_path: Path, format: str) -> None:
    folder = tmp_path / "in"
    write(folder, "a", format, [1, 2, 3])
    flow = ns.Flow("unread", quick)
    flow.source("s", ns.files(folder, format=format, schema=None if format == "text" else "x int, name int"))
    with flow.start(home=tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        assert run.lastProgress is not None
        assert run.lastProgress["numInputRows"] == 3
        assert run.lastProgress["rejectedRows"] == (3 if format == "json" else 0)
        assert run.view("s.rejected").count() == run.lastProgress["rejectedRows"]


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_total_over_an_empty_file_is_there_for_whoever_reads_it(quick: SparkSession, tmp_path: Path, format: str) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    write(folder, "a", format, [])
    flow = ns.Flow("totals", quick)
    rows = flow.source("s", ns.files(folder, format=format, schema="x int, name string"))
    flow.view("total", rows.groupBy().count())
    flow.sql("create view next as select count + 1 as n from total")
    with flow.start(home=home, shards=2) as run:
        run.processAllAvailable()
        write(folder, "b", format, [1, 2])
        run.processAllAvailable()
    assert [ns.open(home).view("next", at=epoch).to_pylist() for epoch in (1, 2)] == [[{"n": 1}], [{"n": 3}]]
