"""Rows of this process in the JVM: what plans make of them is what Spark makes of them otherwise, whichever columns they ask for."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.types import StructType, _parse_datatype_string

from nosync.bridge import kept_plans
from nosync.bridge.kept_plans import Channel, KeptPlan, Leaf
from nosync.bridge.sessions import active

SCHEMA = (
    "k bigint, s string, d decimal(20,4), x double, at timestamp, on date, b binary, "
    "a array<int>, m map<string,int>, t struct<u:int,v:string>"
)
ROWS: list[tuple[Any, ...]] = [
    (1, "one", Decimal("1.5"), 0.5, datetime.datetime(2026, 1, 1), datetime.date(2026, 1, 2), b"x", [1, None], {"p": 1}, (1, "v")),
    (2, "日本", None, float("nan"), None, None, None, [], {}, (None, None)),
    (None, None, Decimal("-0.0001"), -0.0, datetime.datetime(1950, 1, 1), datetime.date(9999, 12, 31), b"", None, None, None),
]


@pytest.fixture
def channel(quick: SparkSession) -> Iterator[Channel]:
    with active(quick):
        yield Channel(quick)


def batches(rows: list[tuple[Any, ...]], schema: StructType) -> list[pa.RecordBatch]:
    return LocalDataToArrowConversion.convert(rows, schema, False).to_batches()


def leaf_with(channel: Channel, rows: list[tuple[Any, ...]]) -> tuple[Leaf, DataFrame]:
    schema = _parse_datatype_string(SCHEMA)
    assert isinstance(schema, StructType)
    leaf = Leaf(channel, schema)
    leaf.put(batches(rows, schema))
    return leaf, channel.catalyst.frame(leaf.plan)


def shown(plan: KeptPlan, rows: list[pa.RecordBatch]) -> list[str]:
    return sorted(map(str, pa.Table.from_batches(rows, plan.arrow).to_pylist()))


QUERIES: dict[str, Any] = {
    "all columns": lambda frame: frame,
    "some columns, in another order": lambda frame: frame.select("t", "k"),
    "no column": lambda frame: frame.select(F.lit(1).alias("one")),
    "a filter over one, another kept": lambda frame: frame.where("x > 0 or s = '日本'").select("m"),
    "a filter alone": lambda frame: frame.where("k = 1"),
    "columns from both sides of a union": lambda frame: frame.select("s", "d").union(frame.select("s", F.col("d") * 2)),
    "an explosion": lambda frame: frame.select("k", F.explode_outer("a").alias("one")),
    "text of everything": lambda frame: frame.select(F.to_json(F.struct(*[name for name in frame.columns if name != "m"])).alias("json")),
}


@pytest.mark.parametrize("generated", [False, True])
def test_plans_over_held_rows_give_what_spark_gives_and_many_run_in_one_call(
    channel: Channel, quick: SparkSession, monkeypatch: pytest.MonkeyPatch, generated: bool
) -> None:
    monkeypatch.setattr(kept_plans, "FEW_ROWS", 0 if generated else 100)
    leaf, frame = leaf_with(channel, ROWS)
    plans = [KeptPlan(channel, query(frame), [leaf]) for query in QUERIES.values()]
    assert all(plan.without_job for plan in plans)
    for rows in (ROWS, ROWS[1:], []):
        leaf.put(batches(rows, leaf.schema) if rows else [])
        wanted = quick.createDataFrame(rows, SCHEMA)
        for name, plan, found in zip(QUERIES, plans, channel.run(plans), strict=True):
            assert shown(plan, found) == sorted(map(str, QUERIES[name](wanted).toArrow().to_pylist())), name


def test_a_plan_that_is_made_later_sees_the_rows_that_are_there(channel: Channel) -> None:
    leaf, frame = leaf_with(channel, ROWS)
    channel.flush()
    late = KeptPlan(channel, frame.select("s"), [leaf])
    assert shown(late, late.rows()) == sorted(str({"s": row[1]}) for row in ROWS)


def test_a_job_sees_the_rows_too(channel: Channel) -> None:
    leaf, frame = leaf_with(channel, ROWS)
    counted = KeptPlan(channel, frame.groupBy("s").count(), [leaf])
    assert not counted.without_job
    found, _ = channel.collected(frame.groupBy("s").agg(F.sum("k").alias("k")))
    assert {row["s"]: row["k"] for batch in found for row in batch.to_pylist()} == {"one": 1, "日本": 2, None: None}
