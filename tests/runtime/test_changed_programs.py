"""A changed program on an old home: what did not change keeps its state, the rest is rebuilt from all input or begins empty."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.journal.entries import Trimmed
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing import Batch, judge
from tests.queries import test_event_time as event_time

Views = Callable[[Any, DataFrame, DataFrame], None]
ORDERS = [("ann", 5, "pen"), ("bob", 7, "ink"), ("ann", 9, "ink")]
USERS = [("ann", "Bern"), ("bob", "Basel")]


def before(flow: Any, orders: DataFrame, users: DataFrame) -> None:
    flow.view("spend", orders.groupBy("user").agg(F.sum("price").alias("spent")))
    flow.view("dear", orders.groupBy("item").agg(F.max("price").alias("price")))
    flow.view("places", orders.join(users, "user").groupBy("city").agg(F.sum("price").alias("spent")))
    flow.view("old", orders.where("price > 6").select("user"))


def after(flow: Any, orders: DataFrame, users: DataFrame) -> None:
    """`early` shares the join of `places`, which now comes first; `spend` is the same; `dear` is not; `old` is gone; `items` is new."""
    flow.view("early", orders.join(users, "user").groupBy("item").agg(F.count("*").alias("n")))
    flow.view("dear", orders.groupBy("item").agg(F.min("price").alias("price")))
    spend = flow.view("spend", orders.groupBy("user").agg(F.sum("price").alias("spent")))
    flow.view("places", orders.join(users, "user").groupBy("city").agg(F.sum("price").alias("spent")))
    flow.view("whales", spend.where("spent > 8"))


class House:
    """A home, and the sources that outlive the programs on it."""

    def __init__(self, spark: SparkSession, home: Path, removing: bool = True) -> None:
        self.spark, self.home, self.removing = spark, home, removing
        self.rows: dict[str, list[Any]] = {"orders": [], "users": []}

    def flow(self, views: Views, schema: str = "user string, price int, item string") -> tuple[ns.Flow, dict[str, Any]]:
        flow = ns.Flow("shop", self.spark)
        schemas = {"orders": schema, "users": "user string, city string"}
        sources = {name: ns.memory(columns, removals=self.removing) for name, columns in schemas.items()}
        views(flow, *(flow.source(name, source, checked=False) for name, source in sources.items()))
        return flow, sources

    def start(self, views: Views, **options: Any) -> Stepping:
        flow, self.sources = self.flow(views, options.pop("schema", "user string, price int, item string"))
        return begin(flow.program(), self.home, 2, **options).recover()

    def step(self, stepping: Stepping, removed: bool = False, **rows: list[Any]) -> None:
        for name, given in rows.items():
            (self.sources[name].remove if removed else self.sources[name].add)(given)
            for row in given:
                (self.rows[name].remove if removed else self.rows[name].append)(row)
        stepping.step()

    def check(self, views: Views, schema: str = "user string, price int, item string") -> None:
        """Every view as Spark says."""
        frames = {
            "orders": self.spark.createDataFrame(self.rows["orders"], schema),
            "users": self.spark.createDataFrame(self.rows["users"], "user string, city string"),
        }
        batch = Batch(self.spark, frames)
        views(batch, *(batch.source(name) for name in frames))
        home = ns.open(self.home)
        judge(home, lambda _: batch, [home.epoch])


@pytest.fixture
def house(quick: SparkSession, tmp_path: Path) -> House:
    """Two epochs of the first program."""
    house = House(quick, tmp_path / "home")
    stepping = house.start(before)
    house.step(stepping, orders=ORDERS[:2], users=USERS)
    house.step(stepping, orders=ORDERS[2:])
    stepping.close()
    return house


def paths(stepping: Stepping, trace: str) -> set[str]:
    return {layer.path for layers in stepping.image.traces.get(trace, {}).values() for layer in layers}


def test_what_is_new_or_changed_is_rebuilt_and_the_rest_keeps_its_state(house: House, tmp_path: Path) -> None:
    with pytest.raises(ns.Invalid) as error:
        house.start(after)
    first, hint = str(error.value).splitlines()
    for words in ('"dear/regroup" is changed', '"early/aggregate-2" is new', '"whales/rows" is new', '"old/rows" is gone'):
        assert words in first
    assert "spend" not in first and "places" not in first and "3 of 8 operators" in hint, first

    def with_sink(flow: Any, orders: DataFrame, users: DataFrame) -> None:
        after(flow, orders, users)
        if isinstance(flow, ns.Flow):
            flow.sink("out", orders.select("item"), ns.parquet(tmp_path / "out"), release="computed")

    stepping = house.start(before)
    kept = {trace: paths(stepping, trace) for trace in ("spend/aggregate", "places/join/left", "places/join/right", "places/aggregate-2")}
    old = paths(stepping, "old/rows")
    stepping.close()
    stepping = house.start(with_sink, on_change="rebuild")
    assert all(kept.values()) and {trace: paths(stepping, trace) for trace in kept} == kept
    assert set(stepping.takeover.kept) == {"spend/aggregate", "places/join", "places/aggregate-2"}
    house.check(after)
    house.step(stepping, orders=[("cleo", 20, "pen")], users=[("cleo", "Bern")])
    house.step(stepping, removed=True, orders=[("ann", 5, "pen")])
    house.check(after)
    assert not paths(stepping, "old/rows") and all((house.home / path).exists() for path in old)
    stepping.upkeep.look_for_orphans()
    for duty in [*stepping.upkeep.duties().values()] * 8:
        duty()
    stepping.close()
    assert not any((house.home / path).exists() for path in old)
    delivered = pq.read_table(tmp_path / "out").group_by(["_epoch", "item"]).aggregate([("_diff", "sum")]).to_pylist()
    assert sorted((row["_epoch"], row["item"], row["_diff_sum"]) for row in delivered) == [
        (2, "ink", 2), (2, "pen", 1), (3, "pen", 1), (4, "pen", -1),
    ]  # fmt: skip

    home = ns.open(house.home)
    assert home.view("spend", at=1).num_rows == 2
    with pytest.raises(ns.NotInHistory, match=r"Ask for epoch 2 or later"):
        home.view("dear", at=1)
    assert home.view("dear", at=2).num_rows == 2 and home.view("dear", at=3).num_rows == 2
    stepping = house.start(with_sink)  # the same program: no change
    assert not stepping.takeover.epoch
    stepping.close()
    stepping = house.start(before, on_change="rebuild")
    stepping.close()
    house.check(before)
    assert "dear/regroup@3" in ns.open(house.home).image.traces


def test_a_rebuild_that_fails_leaves_the_home_to_the_program_before(house: House) -> None:
    @F.udf("int")
    def broken(price: int) -> int:
        raise ValueError("no")

    def failing(flow: Any, orders: DataFrame, users: DataFrame) -> None:
        before(flow, orders, users)
        flow.view("wrong", orders.select(broken("price")))

    with pytest.raises(ns.Failed):
        house.start(failing, on_change="rebuild")
    stepping = house.start(before)
    house.step(stepping, orders=[("bob", 1, "pen")])
    stepping.close()
    house.check(before)


def test_input_that_was_trimmed_cannot_be_computed_from_again(house: House) -> None:
    stepping = house.start(before)
    stepping.journal.append(Trimmed("orders", 1))
    stepping.close()
    with pytest.raises(ns.Invalid, match='the input of "orders" up to epoch 1 was deleted'):
        house.start(after, on_change="rebuild")
    with pytest.raises(ns.Invalid, match='"orders" may take rows back that it never saw'):
        house.start(after, on_change="discard")


def test_what_was_discarded_begins_empty_and_says_so(quick: SparkSession, tmp_path: Path) -> None:
    house = House(quick, tmp_path / "home", removing=False)
    sink = ns.parquet(tmp_path / "out")

    def one(flow: Any, orders: DataFrame, users: DataFrame) -> None:
        spend = flow.view("spend", orders.groupBy("user").agg(F.sum("price").alias("spent")))
        flow.sink("changes", spend, sink)

    def other(flow: Any, orders: DataFrame, users: DataFrame) -> None:
        spend = flow.view("spend", orders.groupBy("user").agg(F.sum(F.col("price") * 2).alias("spent")))
        flow.view("items", orders.groupBy("item").count())
        flow.sink("changes", spend, sink)

    flow, sources = house.flow(one)
    with flow.start(house.home, shards=1) as run:
        sources["orders"].add(ORDERS)
        run.processAllAvailable()
    with pytest.raises(ns.Invalid, match='sink "changes" cannot be rebuilt'):
        house.flow(other)[0].start(house.home, on_change="rebuild")
    flow, sources = house.flow(other)
    with flow.start(house.home, on_change="discard") as run:
        sources["orders"].add([("ann", 1, "pen")])
        run.processAllAvailable()
        assert run.guarantees()["changes"].guarantee == "divergent"
        assert set(run.takeover.emptied) == {"spend/aggregate@2", "items/aggregate", "sink changes/rows@2"}
    home = ns.open(house.home)
    assert home.view("spend").to_pylist() == [{"user": "ann", "spent": 2}]
    assert home.view("items").to_pylist() == [{"item": "pen", "count": 1}]
    with pytest.raises(ns.NotInHistory):
        home.view("spend", at=1)
    assert pq.read_table(tmp_path / "out", filters=[("_epoch", "=", 2)]).to_pylist() == [
        {"user": "ann", "spent": 2, "_epoch": 2, "_diff": 1}
    ]


def test_a_column_that_nobody_asks_for_is_no_change_and_is_null_in_what_was_there(house: House) -> None:
    schema = "user string, price int, item string, note string"
    stepping = house.start(before, schema=schema)
    assert not stepping.takeover.epoch
    stepping.close()

    def noted(flow: Any, orders: DataFrame, users: DataFrame) -> None:
        before(flow, orders, users)
        flow.view("notes", orders.groupBy("note").count())

    stepping = house.start(noted, schema=schema, on_change="rebuild")
    house.step(stepping, orders=[("bob", 1, "pen", "soon")])
    stepping.close()
    house.rows["orders"] = [(*row, None) if len(row) == 3 else row for row in house.rows["orders"]]
    house.check(noted, schema)

    wider = schema.replace("price int", "price bigint")
    stepping = house.start(noted, schema=wider, on_change="rebuild")
    stepping.close()
    assert "notes/aggregate" in stepping.takeover.kept and "spend/aggregate@2" in stepping.takeover.rebuilt
    house.check(noted, wider)


def test_what_goes_by_event_time_is_rebuilt_epoch_by_epoch(quick: SparkSession, tmp_path: Path) -> None:
    """So that the same rows are late, and every epoch can be read."""

    def keys(face: Any) -> None:
        face.view("keys", face.source("s", watermark=("at", "5 seconds")).groupBy("k").count())

    def run(home: str, declare: Any, some: slice, **options: Any) -> Stepping:
        flow, source = event_time.flow_of(quick, declare)
        stepping = begin(flow.program(), tmp_path / home, 2, **options).recover()
        event_time.process(stepping, source, event_time.CHANGES[some])
        stepping.close()
        return stepping

    run("changed", keys, slice(0, 3))
    takeover = run("changed", event_time.program, slice(3, None), on_change="rebuild").takeover
    assert takeover.kept == ("keys/aggregate",) and takeover.epoch == 3
    run("fresh", event_time.program, slice(0, None))
    changed, fresh = ns.open(tmp_path / "changed"), ns.open(tmp_path / "fresh")
    assert changed.epoch == fresh.epoch
    for epoch in range(1, fresh.epoch + 1):
        for view in fresh.views:
            found, wanted = (sorted(map(repr, home.view(view, at=epoch).to_pylist())) for home in (changed, fresh))
            assert found == wanted, f"{view} at epoch {epoch}"
