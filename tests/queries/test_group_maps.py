"""Functions of whole groups, in pandas and Arrow: at every epoch what Spark answers in batch, whatever comes and goes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.testing import Change, check

SCHEMAS = {"s": "k string, d double, x int, t map<string,int>", "b": "k string, z int"}
FIRST = [("a", 0.0, 3, {"p": 1}), ("a", None, 1, None), ("a", float("nan"), 2, {}), (None, 1.5, 9, {"q": None}), ("gone", 0.0, 5, {"r": 1})]
MORE = [("a", 0.0, 7, {"s": 2}), ("b", 2.0, None, {"t": 1}), ("b", 2.0, None, {"t": 1})]
B = [("a", 1), ("c", 2), ("c", 3), (None, 4)]
CHANGES = [
    Change({"s": FIRST, "b": B[:2]}),
    Change({"s": MORE, "b": B[2:]}, {"s": [FIRST[1], FIRST[4]]}),
    Change({}, {"s": [FIRST[0], FIRST[3], *MORE[1:]], "b": [B[0], B[3]]}),
]


def ranked(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(r=frame["x"].rank().astype("float64"), n=len(frame))


def large_ones(key: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """No rows for most groups, and columns without names."""
    assert list(frame.columns) == ["k", "d", "x", "t"] and len(key) == 2
    return pd.DataFrame([[key[0], int(frame["x"].sum())]] if frame["x"].sum() > 5 else [])


def pieces(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame[["k", "x"]]
        yield frame[["k", "x"]].iloc[:1]


def table(key: Any, rows: pa.Table) -> pa.Table:
    return pa.table({"k": pa.array([key[0].as_py()], pa.string()), "n": pa.array([rows.num_rows], pa.int64())})


def batches(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        if batch.num_rows > 1:
            yield batch.select(["k", "x"])


def beside(key: Any, left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    assert str(right["z"].dtype) == "int32" or not len(right)
    return pd.DataFrame({"k": [key[0]], "l": [len(left)], "r": [right["z"].sum()]})


def beside_tables(left: pa.Table, right: pa.Table) -> pa.Table:
    return right.append_column("n", pa.array([left.num_rows] * right.num_rows, pa.int64()))


def program(flow: Any) -> None:
    s, b = flow.source("s"), flow.source("b")
    flow.view("ranked", s.groupBy("k").applyInPandas(ranked, "k string, d double, x int, t map<string,int>, r double, n bigint"))
    flow.view("large", s.groupBy("k", "d").applyInPandas(large_ones, "k string, x bigint").where("x > 6"))
    flow.view("pieces", s.groupBy("k").applyInPandas(pieces, "k string, x int").groupBy("k").agg(F.count("x").alias("n")))
    flow.view("table", s.groupBy("k", F.col("x") > 2).applyInArrow(table, "k string, n bigint"))
    flow.view("batches", s.groupBy("k").applyInArrow(batches, "k string, x int"))
    flow.view("whole", s.groupBy().applyInPandas(lambda frame: frame[["x"]].iloc[:2].agg(["sum"]), "x bigint"))
    flow.view("beside", s.groupBy("k").cogroup(b.groupBy("k")).applyInPandas(beside, "k string, l bigint, r double"))
    flow.view("tables", s.groupBy("x").cogroup(b.groupBy("z")).applyInArrow(beside_tables, "k string, z int, n bigint"))


def ordered(flow: Any) -> None:
    """As `program`, for Spark: the one function that looks at the order of its rows gets them in the order of their columns."""

    class Face:
        def source(self, name: str) -> Any:
            return flow.source(name)

        def view(self, name: str, query: Any) -> Any:
            if name == "whole":
                query = flow.source("s").orderBy("k", "d", "x").limit(2).agg(F.sum("x").alias("x"))
            return flow.view(name, query)

    program(Face())


def test_functions_of_groups_and_of_cogroups(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, program, SCHEMAS, CHANGES, tmp_path, 2, expected=ordered)


def test_a_function_sees_only_the_groups_that_changed(quick: SparkSession, tmp_path: Path) -> None:
    def counted(frame: pd.DataFrame) -> pd.DataFrame:
        with open(tmp_path / "seen", "a") as seen:
            seen.write(frame["k"].iloc[0])
        return frame

    flow = ns.Flow("maps", quick)
    source = ns.memory("k string, x int", removals=True)
    flow.view("v", flow.source("s", source).groupBy("k").applyInPandas(counted, "k string, x int"))
    with flow.start(home=tmp_path / "home", shards=2) as run:
        source.add([(key, 1) for key in "abc"])
        run.processAllAvailable()
        source.add([("b", 2)])
        run.processAllAvailable()
        source.remove([("c", 1)])
        run.processAllAvailable()
        assert sorted(map(tuple, run.view("v").collect())) == [("a", 1), ("b", 1), ("b", 2)]
    assert sorted((tmp_path / "seen").read_text()) == list("abbc")


def test_an_error_in_a_function_of_a_group_is_reported_in_its_own_lines(quick: SparkSession, tmp_path: Path) -> None:
    def broken(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(y=1 // (len(frame) - 1))

    flow = ns.Flow("maps", quick)
    source = ns.memory("k string, x int")
    flow.view("v", flow.source("s", source).groupBy("k").applyInPandas(broken, "k string, x int, y int"))
    source.add([("a", 1)])
    with pytest.raises(ns.Failed) as error, flow.start(home=tmp_path, shards=1) as run:
        run.processAllAvailable()
    text = str(error.value)
    assert 'a function in view "v" raised an error in epoch 1' in text and "in broken" in text and "marking.py" not in text


def test_cogrouping_by_keys_of_different_types_is_refused(quick: SparkSession) -> None:
    flow = ns.Flow("maps", quick)
    s, b = flow.source("s", ns.memory("k string")), flow.source("b", ns.memory("k int"))
    with pytest.raises(ns.Refused, match="different types"):
        flow.view("v", s.groupBy("k").cogroup(b.groupBy("k")).applyInArrow(lambda left, right: left, "k string"))
