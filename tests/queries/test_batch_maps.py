"""Functions over batches that are declared to work row by row: what Spark answers in batch, whatever comes and goes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.compile.row_functions import DIFF_COLUMN, by_diff_in_arrow
from nosync.testing import Change, check

SCHEMAS = {"s": "k string, x int"}
A, B, C, NONE = ("a", 3), ("b", 2), ("c", 0), (None, 5)
CHANGES = [
    Change({"s": [A, A, B, C, NONE]}),
    Change({"s": [("a", 1), ("d", 4)]}, {"s": [A, B]}),
    Change({"s": [B, B]}, {"s": [A, NONE, C]}),
    Change({}, {"s": [("d", 4), B]}),
]


def counted_down(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Many rows for a row, or none."""
    for frame in frames:
        assert list(frame.columns) == ["k", "x"]
        yield pd.DataFrame([(k, n) for k, x in zip(frame["k"], frame["x"], strict=True) for n in range(x)], columns=["k", "n"])


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        twice = pa.array([x * 2 for x in batch.column("x").to_pylist()], pa.int32())
        yield pa.RecordBatch.from_pydict({"k": batch.column("k"), "x": twice})


def program(face: Any) -> None:
    s = face.source("s")
    steps = face.view("steps", s.mapInPandas(ns.row_by_row(counted_down), "k string, n int"))
    face.view("by_key", steps.groupBy("k").agg(F.count("*").alias("n"), F.max("n").alias("most")))
    totals = s.groupBy("k").agg(F.sum("x").cast("int").alias("x"))
    face.view("doubled", totals.mapInArrow(ns.row_by_row(doubled), "k string, x int").where("x > 2"))


def test_they_are_right_under_additions_and_removals(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, program, SCHEMAS, CHANGES, tmp_path)


def test_rows_of_one_diff_are_one_stream_and_the_others_follow() -> None:
    calls: list[list[int]] = []

    def note(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        calls.append([])
        for batch in batches:
            calls[-1] += batch.column("x").to_pylist()
            yield batch

    rows = ([1, 2, 3], [1, -1, 1]), ([4], [1]), ([5, 6], [-1, 2])
    given = [pa.RecordBatch.from_pydict({"x": x, DIFF_COLUMN: diff}) for x, diff in rows]
    found = pa.Table.from_batches(by_diff_in_arrow(note, ["x"])(iter(given))).to_pylist()
    assert calls == [[1, 3, 4], [2, 5], [6]]
    assert {(row["x"], row[DIFF_COLUMN]) for row in found} == {(1, 1), (3, 1), (4, 1), (2, -1), (5, -1), (6, 2)}


def test_what_is_not_declared_or_keeps_a_state_of_sparks_is_refused_with_the_way_out(quick: SparkSession) -> None:
    flow = ns.Flow("maps", quick)
    s = flow.source("s", ns.memory(SCHEMAS["s"]))
    grouped = s.groupBy("k")
    queries = {
        "ns.row_by_row": lambda: s.mapInPandas(counted_down, "k string, n int"),
        "ns.fold with a state": lambda: s.mapInArrow(ns.row_by_row(doubled), "k string, x int", barrier=True),
        "Use ns.fold": lambda: grouped.applyInPandasWithState(lambda key, rows, state: rows, "k string", "n int", "update", "NoTimeout"),
    }
    for words, query in queries.items():
        with pytest.raises(ns.Refused) as error:
            flow.view("v", query())
        assert words in str(error.value), error.value
