"""Blame: from a row back to the input that made it, through aggregates, joins and views on views."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns


def test_a_row_is_traced_to_its_input(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("blame", quick)
    buys, users = ns.memory("user string, price int"), ns.memory("name string, city string", removals=True)
    bought = flow.source("buys", buys)
    flow.source("users", users, checked=False)
    flow.view("spend", bought.where("price > 0").groupBy("user").sum("price").toDF("user", "spent"))
    flow.sql("create view places as select s.user as who, s.spent, u.city from spend s join users u on s.user = u.name")
    flow.sql("create view total as select sum(price) as total from buys")
    flow.sql("create view odd as select user as name, price as at from buys")
    with flow.start(tmp_path, shards=2) as run:
        for prices in ([("ann", 5), ("bob", 7)], [("ann", -1), ("bob", 1)], [("ann", 6)]):
            buys.add(prices)
            if prices[0] == ("ann", 5):
                users.add([("ann", "Rome"), ("bob", "Oslo")])
            run.processAllAvailable()
        spend = run.why("spend", user="ann")
        assert spend.result == ({"user": "ann", "spent": 11},)
        assert [(row["price"], row["_epoch"], row["_diff"]) for row in spend.rows["buys"]] == [(5, 1, 1), (6, 3, 1)]
        assert spend.epochs == (1, 3) and spend.counts == {"buys": 2} and not spend.notes
        assert [(part.epoch, part.rows) for part in spend.parts] == [(1, 1), (2, 0), (3, 1)]
        before = run.why("spend", at=2, user="ann")
        assert before.result == ({"user": "ann", "spent": 5},) and before.epochs == (1,)
        place = run.why("places", who="ann")
        assert place.result == ({"who": "ann", "spent": 11, "city": "Rome"},) and place.counts == {"buys": 2, "users": 1}
        assert place.rows["users"][0]["city"] == "Rome" and "from users: 1 row" in str(place)
        total = run.why("total", most=2, total=18)
        assert total.counts == {"buys": 5} and len(total.rows["buys"]) == 2
        assert any("any of them" in note for note in total.notes) and any("2 are given" in note for note in total.notes)
        assert run.why("spend", user="eve").result == () == run.why("spend", user="eve").epochs
        assert run.why("odd", name="ann").counts == {"buys": 3} and run.why("odd", {"name": "ann", "at": 6}).epochs == (3,)
        assert run.why("odd", {"name": "ann"}, at=1).counts == {"buys": 1}
        with pytest.raises(ns.Invalid, match='view "odd" has a column "at"'):
            run.why("odd", at=6)
        with pytest.raises(ns.Invalid, match='no column "x"'):
            run.why("spend", x=1)
        with pytest.raises(ns.Invalid, match='no view "nothing"'):
            run.why("nothing", x=1)


def test_rows_of_files_are_found_over_several_epochs(quick: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, line in (("1.csv", "ann,5"), ("2.csv", "ann,oops"), ("3.csv", "ann,6")):
        (tmp_path / "in" / name).write_text(f"{line}\nbob,1\n")
    flow = ns.Flow("blamed files", quick)
    buys = flow.source("buys", ns.files(tmp_path / "in", format="csv", schema="user string, price int", maxFilesPerTrigger=1))
    flow.view("spend", buys.groupBy("user").sum("price").toDF("user", "spent"))
    with flow.start(tmp_path / "home", shards=1, trigger="availableNow") as run:
        run.awaitTermination()
        why = run.why("spend", user="ann")
        assert sorted(row["price"] for row in why.rows["buys"]) == [5, 6] and len(why.epochs) == 2 and not why.notes
        assert repr(why).startswith("spend where user='ann', as of epoch 3:\n  {'user': 'ann', 'spent': 11}")
