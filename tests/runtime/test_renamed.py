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
    with started(quick, tmp_path, source, "spend", *computed) as run:
        source.add([("ann", 5)])
        run.processAllAvailable()
        assert run.takeover.kept == ("spend/aggregate",) and run.takeover.rebuilt == ("spend/rows",)
        assert [row.asDict() for row in run.view("spend").collect()] == [{"user": "ann", "spent": 12, "orders": 3, "each": 4.0}]
        assert [row.asDict() for row in run.view("spend", at=1).collect()] == [{"user": "ann", "spent": 7, "orders": 2, "each": 3.5}]
        changes = run.changes("spend").select("each", "_epoch", "_diff").collect()
        assert sorted(map(tuple, changes)) == [(3.5, 1, 1), (3.5, 2, -1), (4.0, 2, 1)]


def test_a_renamed_flow_keeps_its_state_its_past_and_what_its_sinks_have(quick: SparkSession, tmp_path: Path) -> None:
    source = ns.memory("user string, price int")

    def shop(name: str, formerly: str | None = None) -> ns.Flow:
        flow = ns.Flow(name, quick, formerly=formerly)
        spend = flow.view("spend", flow.source("purchases", source).groupBy("user").agg(F.sum("price").alias("spent")))
        flow.sink("out", spend, ns.parquet(tmp_path / "out"))
        return flow

    for number, flow in enumerate((shop("shop"), shop("store", "shop"), shop("store"), shop("mall", "store")), start=1):
        with flow.start(tmp_path / "home", shards=1) as run:
            source.add([("ann", 1)])
            run.processAllAvailable()
            assert run.epoch == number and not run.takeover.rebuilt
            assert run.view("spend", at=1).collect() == [("ann", 1)] and run.view("spend").collect() == [("ann", number)]
    assert len([*(tmp_path / "out").glob("*.parquet")]) == 4
    assert ns.open(tmp_path / "home").status.flow == "mall"
    with pytest.raises(ns.Invalid) as error:
        shop("shop").start(tmp_path / "home")
    assert error.value.message == 'this home belongs to flow "mall", not to "shop"' and 'formerly="mall"' in (error.value.hint or "")


def test_what_a_start_would_do_is_said_before_it_is_done(
    quick: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ns.memory("user string, price int, item string")

    def declared(flow: ns.Flow) -> tuple[ns.Flow, DataFrame]:
        return flow, flow.source("purchases", source)

    flow, rows = declared(ns.Flow("shop", quick))
    spend = flow.view("spend", rows.groupBy("user").agg(F.sum("price").alias("spent")))
    flow.view("best", rows.groupBy("item").agg(F.max("price").alias("price")))
    flow.view("once", rows.select("user").distinct())
    flow.sink("out", spend, ns.foreachEpoch(print))
    with flow.start(tmp_path, shards=1) as run:
        source.add([("ann", 3, "pen")])
        run.processAllAvailable()
    flow.explain(home=tmp_path)
    assert "A start goes on with epoch 2: nothing has to be rebuilt." in capsys.readouterr().out

    flow, rows = declared(ns.Flow("store", quick, formerly="shop"))
    spend = flow.view("spending", rows.groupBy("user").agg(F.sum("price").alias("spent")))
    flow.view("whales", spend.where("spent > 10"))
    flow.view("best", rows.where("price > 0").groupBy("item").agg(F.max("price").alias("price")))
    flow.view("items", rows.groupBy("item").agg(F.count("*").alias("sold")))
    flow.sink("out", spend, ns.foreachEpoch(print))
    flow.explain(home=tmp_path)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for words in (
        'Flow "store" on a home at epoch 1',
        "kept spend/aggregate as it is, with its history",
        "kept sink out as it is, with its history",
        "new items/aggregate the home has no state of it: Aggregate item, count(1) AS sold by item",
        'renamed flow store before "shop": state and history stay',
        'renamed view spending before "spend": state and history stay',
        'on_change="refuse": (if nothing is said) refuses to start',
    ):
        assert words in lines, "\n".join(lines)
    assert any(line.startswith("changed best/aggregate after where") and line.endswith("before nothing") for line in lines), lines
    assert any(line.startswith("gone once/") for line in lines), lines
    assert any(line.startswith('on_change="rebuild": computes best/aggregate, ') for line in lines), lines
    assert ns.open(tmp_path).status.flow == "shop"
    flow, rows = declared(ns.Flow("other", quick))
    flow.explain(home=tmp_path)
    assert 'A start is refused: this home belongs to flow "shop", not to "other"' in capsys.readouterr().out
