"""Files that change, vanish, lead nowhere or cannot be read: none of them stops a flow, hides another, or is silently passed over."""

import base64
import errno
import json
import os
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructType

import nosync as ns
from nosync.cli.main import main
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


def test_a_missing_column_rejects_the_file_unless_files_of_several_versions_belong_together(tmp_path: Path) -> None:
    (tmp_path / "name=1").mkdir()
    write(tmp_path, "good", [1])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "older")
    pq.write_table(pa.table({"X": [1]}), tmp_path / "name=1" / "part")
    for path in (tmp_path / "older", tmp_path / "name=1" / "part"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    slice = source_over(tmp_path).available()
    assert slice and slice["broken"] == {"older": "column name is missing (with mergeSchema=True it is read as null)"}
    merged = source_over(tmp_path, mergeSchema=True).available()
    assert merged and len(names(merged)) == 3 and "broken" not in merged


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


def tear(path: Path) -> None:
    """Bytes in the middle of a page are others; its footer says nothing of it."""
    content = bytearray(path.read_bytes())
    content[100:400] = b"\xff" * 300
    path.write_bytes(content)
    os.utime(path, (LONG_AGO, LONG_AGO))


class Keys(KmsClient):  # type: ignore[misc]
    """Wraps keys in nothing."""

    def __init__(self, config: Any) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64decode(key)


def encrypt(path: Path, plaintext_footer: bool) -> None:
    config = EncryptionConfiguration(footer_key="f", column_keys={"c": ["x"]}, plaintext_footer=plaintext_footer)
    properties = CryptoFactory(Keys).file_encryption_properties(KmsConnectionConfig(), config)
    table = pa.table({"x": list(range(100)), "name": ["secret"] * 100})
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    os.utime(path, (LONG_AGO, LONG_AGO))


def test_what_is_no_file_and_what_leads_back_is_passed_over(tmp_path: Path) -> None:
    """A pipe would make whoever opens it wait; a link to a folder above holds the same files again and again."""
    folder = tmp_path / "in"
    (folder / "day").mkdir(parents=True)
    write(folder, "day/good", [1])
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(folder / "socket"))
    (folder / "nothing").symlink_to("/dev/null")
    for link, target in (("itself", "itself"), ("one", "other"), ("other", "one"), ("here", "."), ("above", ".."), ("day/up", "..")):
        (folder / link).symlink_to(target)
    (tmp_path / "elsewhere").mkdir()
    (folder / "away").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(folder)
    write(tmp_path / "elsewhere", "far", [2], 1)
    assert names(source_over(folder).available()) == ["day/good", "away/far"]


def test_a_folder_that_cannot_be_read_hides_no_other_and_is_said_once_there_is_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
        write(tmp_path, f"{name}/file", [1])
    scan = os.scandir

    def scandir(folder: str) -> Any:
        if folder.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scan(folder)

    source = source_over(tmp_path)
    with monkeypatch.context() as closing:
        closing.setattr(os, "scandir", scandir)
        assert names(source.available()) == ["open/file"]
        with pytest.raises(ns.NosyncError, match=r'".*/closed" cannot be read: Permission denied'):
            source.available()
    assert names(source.available()) == ["closed/file"]


def test_a_name_that_is_no_text_rejects_the_file(tmp_path: Path) -> None:
    """Spark could not be told of it."""
    for format in ("parquet", "csv"):
        folder = tmp_path / format
        folder.mkdir()
        name = os.fsdecode(b"torn\xff")
        (folder / name).write_bytes(b"1,a")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
        taken = source_over(folder, format=format).available()
        assert taken and taken["broken"] == {name: "its name is not UTF-8"}


def test_whatever_a_file_does_wrong_rejects_it_and_nothing_else(quick: SparkSession, tmp_path: Path) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    folder.mkdir()
    write(folder, "good.parquet", list(range(2000)))
    for name in ("*.parquet", "[g]ood.parquet", "{good,text}.parquet", "g\\ood.parquet"):  # which Spark would take for globs
        write(folder, name, [7])
    torn = write(folder, "no text", [8])
    torn.rename(os.fsdecode(os.fsencode(folder / "no text") + b"\xff"))
    write(folder, "text.parquet", ["one"])
    tear(write(folder, "torn page.parquet", list(range(5000))))
    for name, plaintext_footer in (("secret.parquet", False), ("secret column.parquet", True)):
        encrypt(folder / name, plaintext_footer)
    for _ in range(2):
        with flow_over(quick, folder).start(home=home, shards=2) as run:
            run.processAllAvailable()
            assert run.view("rows").count() == 2004
            assert run.view("total").count() == 5
            rejected = {row.file.rsplit("/", 1)[1]: row.reason for row in run.view("s.rejected").collect()}
        write(folder, "later.parquet", pa.array([], pa.int64()), 3600)
    assert sorted(rejected) == ["no text\\xff", "secret column.parquet", "secret.parquet", "text.parquet", "torn page.parquet"]
    assert "string, not int64" in rejected["text.parquet"] and "ncrypted" in rejected["secret.parquet"]
    assert answered("fsck", home).exit_code == 0


def test_a_file_that_is_needed_again_and_cannot_be_had_is_set_aside_on_record(quick: SparkSession, tmp_path: Path) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    folder.mkdir()
    for number, name in enumerate(("a", "b")):
        write(folder, name, [number], number)
    with flow_over(quick, folder).start(home=home, shards=1) as run:
        run.processAllAvailable()
    shutil.rmtree(home / "layers")
    (folder / "a").unlink()
    predicted = answered("fsck", home)
    assert predicted.exit_code == 2 and f'file "{folder / "a"}" of source "s", epoch 1, is gone' in predicted.output
    run = flow_over(quick, folder).start(home=home)
    with pytest.raises(ns.Conflict, match=r'file ".*/in/a" is gone\n.*nosync skip HOME "s" "a"'):
        run.awaitTermination()
    assert answered("skip", home, "t", "a").exit_code == 1 and answered("skip", home, "s", "/elsewhere/a").exit_code == 1
    assert answered("skip", home, "s", str(folder / "a")).output == '"a" of "s" is set aside; epoch 1 had it\n'
    predicted = answered("fsck", home)
    assert predicted.exit_code == 1 and 'Of source "s", set aside for good: a.' in predicted.output
    for _ in range(2):
        with flow_over(quick, folder).start(home=home) as run:
            run.processAllAvailable()
            assert [row.name for row in run.view("rows").collect()] == ["b"]
            assert [tuple(row) for row in run.view("total").collect()] == [("b", 1)]
        write(folder, "a", [5])  # too late: it stays aside
    assert json.loads(answered("status", home, "--json").output)["skipped"] == {"s": ["a"]}


def answered(command: str, home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [command, str(home), *arguments])


def test_what_was_set_aside_is_neither_taken_nor_read(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path, name, [1])
    source = source_over(tmp_path)
    taken = source.available()
    assert taken
    source.start(tmp_path, Taken(lambda: [taken], None, Marks([digests(source.marks(taken))]), ["a", "d"]))
    (tmp_path / "a").unlink()
    assert source.direct(taken) == [str(tmp_path / name) for name in ("b", "c")]
    assert source.reopen(taken, {})["broken"] == {"a": "set aside by nosync skip"}
    write(tmp_path, "d", [1])
    assert source.available() is None
