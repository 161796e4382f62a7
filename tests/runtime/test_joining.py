"""A view that is added to a program on a home with history: it gets its past while the epochs of the rest go on, and joins them."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing import Batch, judge
from tests.longer import more
from tests.queries import test_event_time as event_time

Views = Callable[[Any, DataFrame], None]
SCHEMA = "user string, price int, item string"
ROWS = [("ann", 5, "pen"), ("bob", 7, "ink"), ("ann", 9, "ink"), ("cleo", 2, "pen"), ("dora", 11, "cup")]


def before(flow: Any, orders: DataFrame) -> None:
    flow.view("spend", orders.groupBy("user").agg(F.sum("price").alias("spent")))


def after(flow: Any, orders: DataFrame) -> None:
    """New are an aggregate, a selection of what is there, a join with it, and what Spark recomputes by group."""
    flow.view("items", orders.groupBy("item").agg(F.count("*").alias("n")))
    spend = flow.view("spend", orders.groupBy("user").agg(F.sum("price").alias("spent")))
    flow.view("whales", spend.where("spent > 8"))
    flow.view("shares", orders.join(spend, "user").selectExpr("user", "price / spent as share"))
    flow.view("middle", orders.groupBy("item").agg(F.expr("percentile(price, 0.5)").alias("middle")))


class House:
    """A home, and the rows that its flow was given."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home = spark, home
        self.rows: list[Any] = []

    def flow(self, views: Views) -> ns.Flow:
        flow, self.source = ns.Flow("shop", self.spark), ns.memory(SCHEMA, removals=True)
        views(flow, flow.source("orders", self.source, checked=False))
        return flow

    def start(self, views: Views, **options: Any) -> Stepping:
        return begin(self.flow(views).program(), self.home, 2, **options).recover()

    def add(self, stepping: Stepping, *rows: Any) -> None:
        self.source.add(list(rows))
        self.rows += rows
        assert stepping.step()

    def remove(self, stepping: Stepping, row: Any) -> None:
        self.source.remove([row])
        self.rows.remove(row)
        assert stepping.step()

    def check(self, views: Views) -> None:
        """Every view as Spark says."""
        batch, home = Batch(self.spark, {"orders": self.spark.createDataFrame(self.rows, SCHEMA)}), ns.open(self.home)
        views(batch, batch.source("orders"))
        judge(home, lambda _: batch, [home.epoch])


@pytest.fixture
def house(quick: SparkSession, tmp_path: Path) -> House:
    """One with three epochs."""
    house = House(quick, tmp_path / "home")
    stepping = house.start(before)
    for row in ROWS[:3]:
        house.add(stepping, row)
    stepping.close()
    return house


def joined(stepping: Stepping) -> Stepping:
    """At once, whatever there is to do."""
    assert stepping.joining
    stepping.joining.near = True
    stepping.step()
    assert not stepping.joining
    return stepping


def test_the_others_go_on_until_it_joins_them(house: House) -> None:
    stepping = house.start(after, on_change="rebuild", joins=True)
    house.add(stepping, ROWS[3])
    assert stepping.joining and ns.open(house.home).views == ("spend",) and ns.open(house.home).epoch == 4
    house.check(before)
    joined(stepping)
    assert stepping.takeover.epoch == 4 and stepping.takeover.kept == ("spend/aggregate",)
    house.check(after)
    house.add(stepping, ROWS[4])
    house.remove(stepping, ROWS[0])
    house.check(after)
    stepping.close()
    stepping = house.start(after)
    assert not stepping.takeover.epoch
    stepping.close()


@pytest.mark.parametrize("seed", [0, 1, *more(range(2, 6))])
def test_it_is_the_same_whenever_it_goes_on_and_joins(quick: SparkSession, tmp_path: Path, seed: int) -> None:
    dice, house = random.Random(seed), House(quick, tmp_path / "home")
    stepping = house.start(before)
    rows = [(dice.choice("abcde"), dice.randrange(20), dice.choice("xyz")) for _ in range(40)]
    for _ in range(dice.randrange(1, 4)):
        house.add(stepping, *(rows.pop() for _ in range(dice.randrange(1, 5))))
    stepping.close()
    stepping = house.start(after, on_change="rebuild", joins=True)
    for _ in range(dice.randrange(1, 6)):
        assert stepping.joining
        match dice.randrange(3):
            case 0:
                stepping.joining.rebuild.go_on()
            case 1 if house.rows:
                house.remove(stepping, dice.choice(house.rows))
            case _:
                house.add(stepping, *(rows.pop() for _ in range(dice.randrange(1, 4))))
    joined(stepping)
    house.check(after)
    house.add(stepping, rows.pop())
    house.check(after)
    stepping.close()


def test_what_goes_by_event_time_joins_with_every_epoch_of_its_past(quick: SparkSession, tmp_path: Path) -> None:
    def keys(face: Any) -> None:
        face.view("keys", face.source("s", watermark=("at", "5 seconds")).groupBy("k").count())

    def run(home: str, declare: Any, some: slice, **options: Any) -> Stepping:
        flow, source = event_time.flow_of(quick, declare)
        stepping = begin(flow.program(), tmp_path / home, 2, **options).recover()
        event_time.process(stepping, source, event_time.CHANGES[some])
        return stepping

    run("joined", keys, slice(0, 3)).close()
    stepping = run("joined", event_time.program, slice(3, 4), on_change="rebuild", joins=True)
    assert stepping.joining and stepping.joining.change.stepwise
    stepping.joining.rebuild.go_on()
    assert stepping.upkeep.look_for_orphans() == 0  # its layers are nobody's yet
    stepping.close()
    stepping = joined(run("joined", event_time.program, slice(4, 5), on_change="rebuild", joins=True))
    stepping.close()
    run("joined", event_time.program, slice(5, None)).close()
    run("fresh", event_time.program, slice(0, None)).close()
    found, wanted = ns.open(tmp_path / "joined"), ns.open(tmp_path / "fresh")
    for view in wanted.views:
        assert sorted(map(repr, found.view(view).to_pylist())) == sorted(map(repr, wanted.view(view).to_pylist())), view


def test_a_crash_on_the_way_leaves_the_home_to_the_program_before(house: House) -> None:
    stepping = house.start(after, on_change="rebuild", joins=True)
    assert stepping.joining
    stepping.joining.rebuild.go_on()
    house.add(stepping, ROWS[3])
    stepping.close()  # without having joined
    with pytest.raises(ns.Invalid, match="is new"):
        house.start(after)
    stepping = house.start(before)
    house.add(stepping, ROWS[4])
    stepping.close()
    house.check(before)
    joined(house.start(after, on_change="rebuild", joins=True)).close()
    house.check(after)


def test_what_is_changed_or_gone_as_well_or_goes_to_a_sink_is_waited_for(house: House, tmp_path: Path) -> None:
    def changed(flow: Any, orders: DataFrame) -> None:
        flow.view("spend", orders.groupBy("user").agg(F.max("price").alias("spent")))
        flow.view("items", orders.groupBy("item").count())

    def sending(flow: Any, orders: DataFrame) -> None:
        before(flow, orders)
        flow.sink("out", orders.groupBy("item").count(), ns.parquet(tmp_path / "out"))

    for views in (sending, changed):
        stepping = house.start(views, on_change="rebuild", joins=True)
        assert not stepping.joining and stepping.takeover.epoch == 3
        stepping.close()


def test_nothing_is_given_up_and_no_shards_change_meanwhile(house: House) -> None:
    stepping = house.start(after, on_change="rebuild", joins=True)
    assert stepping.upkeep.keeps_all
    with pytest.raises(ns.Conflict, match="other shards have to wait"):
        stepping.rescaling.ask(3)
    joined(stepping)
    assert not stepping.upkeep.keeps_all
    stepping.rescaling.ask(3)
    house.add(stepping, ROWS[3])
    house.check(after)
    stepping.close()


def test_whoever_asks_for_the_new_view_waits_for_it_and_a_stop_does_not(house: House) -> None:
    flow = house.flow(after)
    with flow.start(house.home, on_change="rebuild") as run:
        assert run.view("spend").count() == 2
        assert sorted(row.n for row in run.view("items").collect()) == [1, 2]
        assert run.takeover.epoch == 3
        run.processAllAvailable()
    house.check(after)


def test_a_new_view_that_fails_ends_the_run_and_the_epochs_of_the_others_stay(house: House) -> None:
    @F.udf("int")
    def broken(price: int) -> int:
        raise ValueError("no")

    def failing(flow: Any, orders: DataFrame) -> None:
        before(flow, orders)
        flow.view("wrong", orders.select(broken("price")))

    run = house.flow(failing).start(house.home, on_change="rebuild")
    with pytest.raises(ns.Failed, match='view "wrong"'):
        run.processAllAvailable()
    with pytest.raises(ns.Failed):
        run.view("wrong")
    run.stop()
    stepping = house.start(before)
    house.add(stepping, ROWS[3])
    stepping.close()
    house.check(before)
