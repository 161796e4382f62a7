"""What is only called otherwise costs nothing: the state stays, and so does the past."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns


def started(spark: SparkSession, home: Path, source: Any, view: str, *columns: Any, **options: Any) -> ns.Run:
    flow = ns.Flow("shop", spark)
    purchases: DataFrame = flow.source("purchases", source)
    flow.view(view, purchases.groupBy("user").agg(*columns))
    return flow.start(home, shards=1, **options)


def test_names_and_the_order_of_columns_are_no_change(quick: SparkSession, tmp_path: Path) -> None:
    source, spent, orders = ns.memory("user string, price int"), F.sum("price"), F.count("*")
    with started(quick, tmp_path, source, "spend", spent.alias("spent"), orders.alias("orders")) as run:
        source.add([("ann", 3), ("ann", 4)])
        run.processAllAvailable()
    with started(quick, tmp_path, source, "spending", orders.alias("n"), spent.alias("total")) as run:
        source.add([("ann", 1)])
        run.processAllAvailable()
        assert not run.takeover.rebuilt and run.epoch == 2
        assert [row.asDict() for row in run.view("spending").collect()] == [{"user": "ann", "n": 3, "total": 8}]
        assert [row.asDict() for row in run.view("spending", at=1).collect()] == [{"user": "ann", "n": 2, "total": 7}]


def test_a_column_computed_from_others_keeps_their_state(quick: SparkSession, tmp_path: Path) -> None:
    source, spent, orders = ns.memory("user string, price int"), F.sum("price"), F.count("*")
    with started(quick, tmp_path, source, "spend", spent.alias("spent"), orders.alias("orders")) as run:
        source.add([("ann", 3), ("ann", 4)])
        run.processAllAvailable()
    computed = spent.alias("spent"), orders.alias("orders"), (spent / orders).alias("each")
    with pytest.raises(ns.Invalid) as error:
        started(quick, tmp_path, source, "spend", *computed)
    assert error.value.message == 'the program has changed since epoch 1: "spend/rows" is new'
    with started(quick, tmp_path, source, "spend", *computed, on_change="rebuild") as run:
        assert run.takeover.kept == ("spend/aggregate",) and run.takeover.rebuilt == ("spend/rows",)
        assert [row.asDict() for row in run.view("spend").collect()] == [{"user": "ann", "spent": 7, "orders": 2, "each": 3.5}]
