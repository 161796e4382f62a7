"""Views that keep rows, under other names and in another order of columns: the state stays, and so does the past."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import nosync as ns
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing import Change, Tables, judge

SCHEMAS = {"orders": "user string, price int, item string", "users": "user string, city string"}
CHANGES = [
    Change({"orders": [("ann", 5, "pen"), ("bob", 7, "ink"), ("ann", 5, "pen")], "users": [("ann", "Bern"), ("bob", "Basel")]}),
    Change({"orders": [("cleo", 1, "pen"), ("ann", 9, "ink")]}),
    Change({"orders": [("dan", 2, "pen")], "users": [("cleo", "Bern")]}, {"orders": [("ann", 5, "pen"), ("bob", 7, "ink")]}),
    Change({"orders": [("ann", 4, "cap")]}, {"orders": [("ann", 9, "ink")], "users": [("ann", "Bern")]}),
]


def ranked(orders: DataFrame) -> DataFrame:
    return orders.withColumn("place", F.rank().over(Window.partitionBy("item").orderBy("price")))


def before(face: Any) -> None:
    orders, users = face.source("orders"), face.source("users")
    dear = face.view("dear", orders.where("price > 1").select("user", "price", "item"))
    face.view("homes", orders.join(users, "user").select("user", "city", "price"))
    face.view("outer", orders.join(users, "user", "left").select("user", "price", "city"))
    face.view("once", orders.select("user", "item").distinct())
    face.view("places", ranked(orders).where("place < 3").select("item", "user", "price", "place"))
    face.view("first", orders.orderBy("price").limit(3).select("user", "price"))
    face.view("all", orders.select("user", "item").unionAll(users.select("user", "city")))
    face.view("spread", orders.groupBy("user").agg(F.collect_set("item").alias("items"), F.max("price").alias("most")))
    face.view("twice", orders.select("user", F.col("user").alias("again"), (F.col("price") * 2).alias("double")))
    face.view("stacked", dear.groupBy("user").agg(F.sum("price").alias("spent")).where("spent > 4"))
    face.view("met", dear.join(users, "user").groupBy("city").agg(F.max("price").alias("most")))


def after(face: Any) -> None:
    orders, users = face.source("orders"), face.source("users")
    dear = face.view("dear", orders.where("price > 1").select(F.col("price").alias("paid"), "item", F.col("user").alias("who")))
    face.view("homes", orders.join(users, "user").select("city", F.col("price").alias("paid"), F.col("user").alias("who")))
    whos = users.withColumnRenamed("user", "who")
    face.view("outside", orders.join(whos, F.col("user") == F.col("who"), "left").select("city", "user", F.col("price").alias("paid")))
    face.view("once", orders.select(F.col("item").alias("thing"), F.col("user").alias("who")).distinct())
    face.view("places", ranked(orders).where("place < 3").select(F.col("place").alias("rank"), "price", F.col("user").alias("who"), "item"))
    face.view("first", orders.orderBy("price").limit(3).select(F.col("user").alias("who"), F.col("price").alias("paid")))
    face.view("all", orders.select("item", F.col("user").alias("who")).unionAll(users.select("city", "user")))
    face.view("spread", orders.groupBy("user").agg(F.max("price").alias("top"), F.collect_set("item").alias("things")))
    face.view("twice", orders.select((F.col("price") * 2).alias("d"), "user", F.col("user").alias("other")))
    face.view("stacked", dear.groupBy("who").agg(F.sum("paid").alias("total")).where("total > 4").select("total", "who"))
    face.view("met", dear.join(users, F.col("who") == F.col("user")).groupBy("city").agg(F.max("paid").alias("top")))


class Place:
    """A home, and sources that each program on it has anew."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home, self.done = spark, home, 0
        self.tables = Tables(spark, SCHEMAS, CHANGES)

    def flow(self, views: Any) -> tuple[ns.Flow, dict[str, Any]]:
        flow, sources = ns.Flow("shop", self.spark), {name: ns.memory(schema, removals=True) for name, schema in SCHEMAS.items()}
        views(_Face(flow, sources))
        return flow, sources

    @contextmanager
    def started(self, views: Any, **options: Any) -> Iterator[Stepping]:
        """Goes on with the next change for each `step`."""
        flow, self.sources = self.flow(views)
        stepping = begin(flow.program(), self.home, 2, **options).recover()
        try:
            yield stepping
        finally:
            stepping.close()

    def step(self, stepping: Stepping) -> None:
        change = CHANGES[self.done]
        for name, source in self.sources.items():
            if name in change.added:
                source.add(list(change.added[name]))
            if name in change.removed:
                source.remove(list(change.removed[name]))
        stepping.step()
        self.done += 1
        assert stepping.image.epoch == self.done

    def check(self, views: Any, epochs: Sequence[int] | None = None) -> None:
        """Every view of the program at every epoch (or at these), also those before it came."""
        def batch_at(epoch: int) -> Any:
            batch = self.tables.batch(epoch)
            views(batch)
            return batch

        home = ns.open(self.home)
        judge(home, batch_at, epochs)
        wanted = batch_at(home.epoch)
        for name in home.views:
            assert home.view(name).schema.names == wanted.answer(name).schema.names


class _Face:
    def __init__(self, flow: ns.Flow, sources: dict[str, Any]) -> None:
        self.flow, self.sources, self.view = flow, sources, flow.view

    def source(self, name: str) -> DataFrame:
        return self.flow.source(name, self.sources[name], checked=False)


@pytest.fixture
def place(quick: SparkSession, tmp_path: Path) -> Place:
    return Place(quick, tmp_path / "home")


def test_other_names_and_places_of_columns_keep_state_and_history(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with place.started(before) as stepping:
        place.step(stepping)
        place.step(stepping)
        layers = {trace: {layer.path for found in by.values() for layer in found} for trace, by in stepping.image.traces.items()}
    place.flow(after)[0].explain(home=place.home)
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "A start goes on with epoch 3: nothing has to be rebuilt." in said, "\n".join(said)
    assert "renamed view dear columns paid, item, who; before user, price, item" in said
    assert 'renamed view outside before "outer": state and history stay; columns city, user, paid; before user, price, city' in said
    with place.started(after) as stepping:
        assert not stepping.takeover.epoch
        assert {trace: {layer.path for found in by.values() for layer in found} for trace, by in stepping.image.traces.items()} == layers
        place.step(stepping)
    for path in {str(path.relative_to(place.home)) for path in place.home.glob("layers/**/*.arrow")} - set().union(*layers.values()):
        (place.home / path).unlink()  # what came after the change is lost, and computed again
    with place.started(after) as stepping:
        place.step(stepping)
    place.check(after)
    home = ns.open(place.home)
    assert home.view("dear").where(who="ann", item="cap", paid=4).to_pylist() == [{"paid": 4, "item": "cap", "who": "ann"}]
    changes = [tuple(row.values())[:-2] + (row["_diff"],) for row in home.changes("homes", since=2, until=3).to_pylist()]
    assert sorted(changes) == [("Basel", 7, "bob", 3, -1), ("Bern", 1, "cleo", 3, 1), ("Bern", 5, "ann", 3, -1)]


def test_a_sink_goes_on_where_it_gets_the_columns_that_its_target_has(quick: SparkSession, tmp_path: Path) -> None:
    source = ns.memory("user string, price int", removals=True)

    def shop(changed: bool, as_before: bool = False) -> ns.Flow:
        flow = ns.Flow("shop", quick)
        rows = flow.source("orders", source, checked=False)
        columns = (F.col("price").alias("paid"), F.col("user").alias("who")) if changed else ("user", "price")
        dear = flow.view("dear", rows.where("price > 1").select(*columns))
        sent = dear.select(F.col("who").alias("user"), F.col("paid").alias("price")) if as_before else dear
        flow.sink("out", sent, ns.parquet(tmp_path / "out"), release="computed")
        return flow

    with shop(changed=False).start(tmp_path / "home", shards=1) as run:
        source.add([("ann", 3), ("bob", 4)])
        run.processAllAvailable()
    with pytest.raises(ns.Invalid, match=r'"sink out/rows" is changed\. No way.*\nSelect for sink "out" what it had'):
        shop(changed=True).start(tmp_path / "home")
    with shop(changed=True, as_before=True).start(tmp_path / "home") as run:
        source.remove([("ann", 3)])
        run.processAllAvailable()
        assert run.view("dear").collect() == [(4, "bob")] and run.view("dear", at=1).count() == 2
    sent = pq.read_table(tmp_path / "out").select(["_epoch", "user", "price", "_diff"]).to_pylist()
    assert sorted(tuple(row.values()) for row in sent) == [(1, "ann", 3, 1), (1, "bob", 4, 1), (2, "ann", 3, -1)]
