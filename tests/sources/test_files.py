"""Files that change, vanish, lead nowhere or cannot be read: none of them stops a flow, hides another, or is silently passed over."""

import errno
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType

import nosync as ns
from nosync.journal.taken import Marks, Taken, digests
from nosync.sources.files import Files

SCHEMA = StructType().add("x", LongType()).add("name", StringType())
LONG_AGO = time.time() - 3600


def write(folder: Path, name: str, x: Any, seconds: float = 0.0) -> Path:
    path = folder / name
    pq.write_table(pa.table({"x": x, "name": pa.array([name] * len(x))}), path)
    os.utime(path, (LONG_AGO + seconds, LONG_AGO + seconds))
    return path


def source_over(folder: Path, *slices: dict[str, Any], **options: Any) -> Files:
    source = ns.files(folder, schema=SCHEMA, **options)
    source.declare("s", None)  # type: ignore[arg-type]
    source.start(folder, Taken(lambda: slices, None, Marks([digests(mark for slice in slices for mark in source.marks(slice))])))
    return source


def names(slice: dict[str, Any] | None) -> list[str]:
    return [file[0] for file in slice["files"]] if slice else []


def test_what_leads_nowhere_or_vanishes_is_passed_over_until_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    write(folder, "good", [1])
    (folder / "gone").write_text("")
    stat = Path.stat
    with monkeypatch.context() as vanishing:
        vanishing.setattr(Path, "stat", lambda path, **options: stat(folder / "nowhere" if path.name == "gone" else path, **options))
        source = source_over(folder)
        assert names(source.available()) == ["good"]
    (folder / "gone").unlink()
    write(tmp_path, "elsewhere", [2])
    assert names(source.available()) == ["link"]


def test_a_file_that_cannot_be_read_now_hides_no_other_and_is_not_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("a", "b", "c")):
        write(tmp_path, name, [number], number)
    source, opened = source_over(tmp_path), Path.open

    def ailing(path: Path, *options: Any) -> Any:
        if path.name == "b":
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, *options)

    with monkeypatch.context() as bad:
        bad.setattr(Path, "open", ailing)
        assert names(source.available()) == ["a", "c"]
        with pytest.raises(ns.Unavailable, match='/b" cannot be read: Input/output error'):
            source.available()
    later = source.available()
    assert names(later) == ["b"] and later and "broken" not in later


def test_a_folder_out_of_reach_is_looked_at_again(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    source = source_over(folder)
    folder.rename(tmp_path / "away")
    with pytest.raises(ns.Unavailable, match="cannot be read: No such file"):
        source.available()
    (tmp_path / "away").rename(folder)
    assert source.available() is None


def test_a_file_that_is_still_being_written_is_waited_for(tmp_path: Path) -> None:
    whole = write(tmp_path, "a", [1, 2]).read_bytes()
    (tmp_path / "a").write_bytes(whole[:-20])
    source = source_over(tmp_path)
    assert source.available() is None
    (tmp_path / "a").write_bytes(whole)
    slice = source.available()
    assert slice and slice["rows"] == 2 and "broken" not in slice
    (tmp_path / "b").write_bytes(whole[:-20])
    os.utime(tmp_path / "b", (LONG_AGO, LONG_AGO))
    slice = source.available()
    assert slice and list(slice["broken"]) == ["b"]


def test_files_may_have_to_be_of_an_age(tmp_path: Path) -> None:
    write(tmp_path, "old", [1])
    write(tmp_path, "new", [2], time.time() - LONG_AGO)
    assert names(source_over(tmp_path, minFileAge="1 minute").available()) == ["old"]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array(["1"]), "x is string, not int64"),
        (pa.array([True]), "x is bool, not int64"),
        (pa.array([1.5]), "x is double, not int64"),
        (pa.array([[1]]), "x is list<element: int64>, not int64"),
        (pa.array([1], pa.int32()), None),
        (pa.nulls(1), None),
        (pa.array([1], pa.int64()), None),
    ],
)
def test_a_column_of_another_sort_rejects_the_file_by_name(tmp_path: Path, column: pa.Array, reason: str | None) -> None:
    write(tmp_path, "good", [1])
    write(tmp_path, "other", column, 1)
    slice = source_over(tmp_path).available()
    assert slice and names(slice) == ["good", "other"]
    assert slice.get("broken") == ({"other": reason} if reason else None)
    assert slice["rows"] == (1 if reason else 2)


def test_a_file_that_changes_after_it_was_taken_is_rejected_once(tmp_path: Path) -> None:
    write(tmp_path, "a", [1])
    write(tmp_path, "b", [1])
    source = source_over(tmp_path)
    taken = source.available()
    assert taken and source.available() is None
    write(tmp_path, "a", [1, 2])
    changed = source.available()
    assert changed and names(changed) == [] and list(changed["broken"]) == ["a"] and source.rejects(changed) == 1
    assert source.available() is None
    again = source_over(tmp_path, taken, changed)
    assert again.available() is None
    write(tmp_path, "b", [3], 5)
    again = source_over(tmp_path, taken, changed)  # it changed while nothing ran
    found = again.available()
    assert found and list(found["broken"]) == ["b"] and again.available() is None


def test_a_slice_is_recorded_anew_as_its_files_are_now(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "c", "d")):
        write(tmp_path, name, [number], number)
    source = source_over(tmp_path)
    slice = source.available()
    assert slice and source.reopen(slice, {}) is slice
    write(tmp_path, "a", [1, 2, 3], 9)
    (tmp_path / "b").unlink()
    found = source.reopen(slice, {str(tmp_path / "c"): "cannot be read: a torn page"})
    assert found["broken"] == {"b": "gone before it was read", "c": "cannot be read: a torn page"} and found["rows"] == 4
    assert source.reopen(found, {}) is found and source.available() is None


def flow_over(spark: SparkSession, folder: Path) -> ns.Flow:
    flow = ns.Flow("files", spark)
    rows = flow.source("s", ns.files(folder, schema=SCHEMA))
    flow.view("rows", rows.select("x", "name"))
    flow.view("total", rows.groupBy("name").sum("x"))
    return flow


def test_whatever_a_file_does_wrong_rejects_it_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    folder.mkdir()
    write(folder, "good.parquet", list(range(2000)))
    write(folder, "text.parquet", ["one"])
    content = bytearray(write(folder, "torn page.parquet", list(range(5000))).read_bytes())
    content[100:400] = b"\xff" * 300
    (folder / "torn page.parquet").write_bytes(content)
    os.utime(folder / "torn page.parquet", (LONG_AGO, LONG_AGO))
    for _ in range(2):
        with flow_over(spark, folder).start(home=home, shards=2) as run:
            run.processAllAvailable()
            assert run.view("rows").count() == 2000
            assert [row.name for row in run.view("total").collect()] == ["good.parquet"]
            rejected = {row.file.rsplit("/", 1)[1]: row.reason for row in run.view("s.rejected").collect()}
        write(folder, "later.parquet", pa.array([], pa.int64()), 3600)
    assert sorted(rejected) == ["text.parquet", "torn page.parquet"] and "string, not int64" in rejected["text.parquet"]
