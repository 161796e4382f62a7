"""A folder of Parquet files holds the output of one history, written by the newest run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nosync as ns

MINE = ns.Identity("shop", "out", "1.aa")


@dataclass
class Given:
    """One epoch's output, made up."""

    epoch: int
    values: list[int]

    @property
    def empty(self) -> bool:
        return not self.values

    @property
    def schema(self) -> pa.Schema:
        return self.table().schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table().to_batches()

    def table(self) -> pa.Table:
        return pa.table({"x": self.values, "_epoch": [self.epoch] * len(self.values), "_diff": [1] * len(self.values)})

    def frame(self) -> Any:
        raise AssertionError("a file needs no Spark")


def test_the_runs_of_one_history_go_on_in_their_folder(tmp_path: Path) -> None:
    for epoch, run in ((1, "1.aa"), (2, "2.bb")):
        sink = ns.parquet(tmp_path / "out")
        sink.open(run, MINE)
        sink.deliver(epoch, Given(epoch, [epoch]))
        sink.deliver(epoch, Given(epoch, [epoch]))
        sink.close()
    assert pq.read_table(tmp_path / "out").column("x").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (ns.Identity("shop", "out", "1.cc"), "has the output of the same flow on another home"),
        (ns.Identity("shop", "other", "1.aa"), 'has the output of flow "shop", sink "out"'),
        (ns.Identity("shop 2", "out", "1.aa"), 'has the output of flow "shop", sink "out"'),
    ],
)
def test_the_folder_of_another_history_is_refused(tmp_path: Path, identity: ns.Identity, words: str) -> None:
    ns.parquet(tmp_path).open("1.aa", MINE)
    with pytest.raises(ns.Invalid, match=words):
        ns.parquet(tmp_path).open("1.cc", identity)
    ns.parquet(tmp_path).open("2.bb", MINE)


def test_epochs_of_unknown_origin_are_refused_but_a_folder_of_other_things_is_not(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    ns.parquet(tmp_path).open("1.aa", MINE)
    (tmp_path / "_nosync.json").unlink()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "epoch-000000000001.parquet")
    with pytest.raises(ns.Invalid, match="has the output of nobody knows whom"):
        ns.parquet(tmp_path).open("1.aa", MINE)
    (tmp_path / "_nosync.json").write_text("{")
    with pytest.raises(ns.Invalid, match="cannot be read"):
        ns.parquet(tmp_path).open("1.aa", MINE)


def test_a_run_that_a_newer_one_has_replaced_writes_nothing(tmp_path: Path) -> None:
    older, newer = ns.parquet(tmp_path), ns.parquet(tmp_path)
    older.open("1.aa", MINE)
    newer.open("2.bb", MINE)
    with pytest.raises(ns.Fenced, match=r'is now written by run "2\.bb"'):
        older.deliver(1, Given(1, [1]))
    assert not list(tmp_path.glob("epoch-*"))


def test_a_folder_out_of_reach_is_tried_again(tmp_path: Path) -> None:
    sink = ns.parquet(tmp_path / "out")
    sink.open("1.aa", MINE)
    (tmp_path / "out").rename(tmp_path / "away")
    with pytest.raises(ns.Unavailable):
        sink.deliver(1, Given(1, [1]))
    (tmp_path / "away").rename(tmp_path / "out")
    sink.deliver(1, Given(1, [1]))
    assert pq.read_table(tmp_path / "out").num_rows == 1
