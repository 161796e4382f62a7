"""Rows of one's own source are as it declared them, or the run says which columns are not."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

import nosync as ns
from nosync.model.bound import bound
from nosync.sources.fitting import fitting

SCHEMA = StructType().add("id", LongType())


class One:
    """One slice, read by a query of one's own."""

    append_only = True

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns

    def declare(self, name: str, spark: SparkSession) -> StructType:
        return SCHEMA

    def start(self, folder: Path, taken: ns.Taken) -> None:
        self.left = [] if taken.latest else [{"last": 1}]

    def available(self) -> ns.Slice | None:
        return self.left.pop() if self.left else None

    def read(self, spark: SparkSession, slice: ns.Slice) -> Any:
        return spark.range(5).selectExpr(*self.columns)


WRONG = {
    "in another order": ["1L as _diff", "id"],
    "without _diff": ["id"],
    "of another name": ["id as number", "1L as _diff"],
    "of another type": ["cast(id as int) as id", "1L as _diff"],
    "one too many": ["id", "id as again", "1L as _diff"],
    "_diff is no bigint": ["id", "1 as _diff"],
}


@pytest.mark.parametrize("columns", WRONG.values(), ids=WRONG)
def test_columns_that_are_not_as_declared_are_named(spark: SparkSession, columns: list[str]) -> None:
    source = One(columns)
    with pytest.raises(ns.Failed, match=r'source "s": read gave .*, and not id bigint, _diff bigint') as error:
        fitting(bound(source), source, "s", SCHEMA).read(spark, {})
    assert "_diff" in error.value.hint


def test_what_is_no_dataframe_is_named(spark: SparkSession) -> None:
    source: Any = One([])
    source.read = lambda spark, slice: [1]
    with pytest.raises(ns.Failed, match='source "s": read gave a list, not a DataFrame'):
        fitting(bound(source), source, "s", SCHEMA).read(spark, {})


def test_a_table_is_held_to_the_same() -> None:
    source: Any = One([])
    source.table = lambda slice: slice["table"]
    found = fitting(bound(source), source, "s", SCHEMA)
    good = pa.table({"id": [1], "_diff": [1]})
    assert found.table is not None and found.table({"table": good}) is good
    with pytest.raises(ns.Failed, match='source "s": table gave _diff, id, and not id, _diff'):
        found.table({"table": good.select(["_diff", "id"])})
    with pytest.raises(ns.Failed, match='source "s": table gave a list'):
        found.table({"table": [1]})


def test_a_run_ends_where_columns_would_be_taken_for_one_another(quick: SparkSession, tmp_path: Path) -> None:
    def started(columns: list[str]) -> ns.Run:
        flow = ns.Flow("f", quick)
        flow.view("v", flow.source("s", One(columns)).groupBy().count())
        return flow.start(tmp_path, shards=1)

    run = started(["1L as _diff", "id"])
    with pytest.raises(ns.Failed, match='source "s": read gave _diff bigint, id bigint, and not id bigint, _diff bigint'):
        run.processAllAvailable()
    run.stop()
    with started(["id", "1L as _diff"]) as run:
        run.processAllAvailable()
        assert [row["count"] for row in run.view("v").collect()] == [5]
