"""A view that gets one more column, computed from those that it has, keeps its past; so does one that loses such a column."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.journal.entries import Thinned
from nosync.model.identifiers import Epoch

from .test_renamed_rows import Place


def few(face: Any) -> None:
    orders, users = face.source("orders"), face.source("users")
    face.view("dear", orders.where("price > 1").select("user", "price"))
    face.view("homes", orders.join(users, "user").select("user", "city", "price"))
    face.view("spent", orders.groupBy("user").agg(F.sum("price").alias("spent")))
    face.view("total", orders.agg(F.count("*").alias("orders"), F.sum("price").alias("spent")))


def more(face: Any) -> None:
    orders, users = face.source("orders"), face.source("users")
    twice, loud = (F.col("price") * 2 + 1).alias("double"), F.upper("user").alias("loud")
    face.view("dear", orders.where("price > 1").select(twice, "user", F.col("price").alias("paid"), loud))
    joined = orders.join(users, "user")
    face.view("homes", joined.select("user", "city", "price", F.concat_ws("-", "city", "user").alias("where"), F.lit(7).alias("seven")))
    summed, counted = F.sum("price"), F.count("*")
    face.view("spent", orders.groupBy("user").agg(summed.alias("spent"), (summed * 1.5).alias("gross"), F.length("user").alias("n")))
    face.view("total", orders.agg(counted.alias("orders"), summed.alias("spent"), (summed / counted).alias("mean")))


def one(face: Any) -> None:
    orders, _ = face.source("orders"), face.source("users")
    face.view("dear", orders.where("price > 1").select("user", "price"))


def other(face: Any) -> None:
    orders, _ = face.source("orders"), face.source("users")
    face.view("dear", orders.where("price > 1").select("user", "price", F.upper("item").alias("loud")))


@pytest.fixture
def place(quick: SparkSession, tmp_path: Path) -> Place:
    return Place(quick, tmp_path / "home")


def explained(place: Place, views: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    place.flow(views)[0].explain(home=place.home)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_column_computed_from_others_keeps_the_past(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with place.started(few) as stepping:
        for _ in range(3):
            place.step(stepping)
        stepping.journal.append(Thinned(Epoch(3), (Epoch(1),)))
    spent = {epoch: ns.open(place.home).view("spent", at=epoch).to_arrow() for epoch in (1, 3)}
    said = explained(place, more, capsys)
    assert "A start goes on with epoch 4: nothing has to be rebuilt." in said, "\n".join(said)
    words = "columns double, user, paid, loud; before user, price: computed from its own rows, as of all epochs"
    assert f"extended view dear {words}" in said
    with place.started(more) as stepping:
        assert sorted(stepping.takeover.rebuilt) == ["dear/rows@2", "homes/rows@2", "spent/rows", "total/rows"]
    for layer in place.home.glob("layers/dear/rows@2/**/*.arrow"):
        layer.unlink()  # what was rewritten is lost, and comes from the input
    with place.started(more) as stepping:
        place.step(stepping)
    place.check(more, (1, 3, 4))
    with pytest.raises(ns.NotInHistory):
        ns.open(place.home).view("dear", at=2)
    changes = ns.open(place.home).changes("spent", since=1, until=3).select(["user", "gross", "_diff"]).to_pylist()
    assert sorted(tuple(row.values()) for row in changes) == [
        ("ann", 15.0, -1), ("ann", 21.0, 1), ("bob", 10.5, -1), ("cleo", 1.5, 1), ("dan", 3.0, 1)
    ]  # fmt: skip
    with pytest.raises(ns.Invalid, match="the program has changed"):  # columns would be gone
        place.started(few).__enter__()
    with place.started(few, on_change="rebuild"):
        home = ns.open(place.home)
        for epoch, rows in spent.items():
            assert home.view("spent", at=epoch).sort_by("user") == rows.sort_by("user")
        assert home.view("dear", at=1).schema.names == ["user", "price"] and home.view("dear", at=1).num_rows == 3


def test_a_column_of_what_the_view_has_not_is_a_change(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    with place.started(one) as stepping:
        place.step(stepping)
    said = explained(place, other, capsys)
    assert "changed view dear gives user, price, loud; before user, price" in said, "\n".join(said)
    assert any(line.startswith('on_change="rebuild": computes dear/rows from the input of orders') for line in said)
