"""Rows that cannot be had again leave their source only when they stand in the home and belong to a recorded epoch."""

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructType

import nosync as ns
from nosync.journal.taken import Marks, Taken
from nosync.model.bound import BoundSource, bound
from nosync.sources.input_log import logged
from nosync.sources.memory import Memory

SCHEMA = StructType().add("x", IntegerType())


def given() -> tuple[Memory, BoundSource]:
    memory: Any = ns.memory(SCHEMA)
    memory.declare("s", None)
    return memory, logged(bound(memory), "s", SCHEMA, None)  # type: ignore[arg-type]


def taken(*slices: dict[str, Any]) -> Taken:
    return Taken(lambda: slices, slices[-1] if slices else None, Marks())


def stored(folder: Path, slice: dict[str, Any]) -> list[int]:
    with pa.OSFile(str(folder / slice["file"]), "rb") as file:
        found: list[int] = pa.ipc.open_file(file).read_all().column("x").to_pylist()
        return found


def test_a_full_disk_loses_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, source = given()
    source.start(tmp_path, taken())
    memory.add([(1,), (2,)])
    with monkeypatch.context() as full:
        full.setattr("nosync.store.disk.open_private", _full)
        for _ in range(2):
            with pytest.raises(ns.Unavailable, match="2 rows could not be written into the home: No space left"):
                source.available()
    memory.add([(3,)])
    first, second = source.available(), source.available()
    assert first and second and source.available() is None
    assert [stored(tmp_path, slice) for slice in (first, second)] == [[1, 2], [3]]
    assert len(list(tmp_path.iterdir())) == 2


def _full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_no_epoch_has_is_handed_out_again_by_the_next_run(tmp_path: Path) -> None:
    memory, source = given()
    source.start(tmp_path, taken())
    slices = []
    for number in range(3):
        memory.add([(number,)])
        slices.append(source.available())
    assert slices[0] and slices[1]
    source.acknowledge(slices[0])
    source.start(tmp_path, taken(slices[0], slices[1]))  # the second was recorded, though the source never heard of it
    again = source.available()
    assert again and stored(tmp_path, again) == [2]
    assert source.available() is None


class Choosy(Memory):
    """Cannot be read again, and rejects rows when it is read."""

    def rejects(self, slice: Any) -> int:
        return 0

    def rejected(self, spark: Any, slice: Any, epoch: Any) -> Any: ...


def test_a_source_that_cannot_be_read_again_cannot_reject_while_it_is_read() -> None:
    with pytest.raises(ns.Invalid, match='source "s" has acknowledge, so its rows are written down once, and rejects'):
        logged(bound(Choosy(SCHEMA)), "s", SCHEMA, None)  # type: ignore[arg-type]


def test_a_slice_is_as_json_has_it_before_its_rows_are_written(tmp_path: Path) -> None:
    class Odd(Memory):
        def available(self) -> Any:
            return {"number": 1, "of": self.id, 7: "x"}

    source = logged(bound(Odd(SCHEMA)), "s", SCHEMA, None)  # type: ignore[arg-type]
    source.start(tmp_path, taken())
    for _ in range(2):
        with pytest.raises(ns.Failed, match='source "s" gave a slice'):
            source.available()
    assert not list(tmp_path.iterdir())
