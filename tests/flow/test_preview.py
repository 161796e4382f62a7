"""A look at a query before the flow runs: the first rows, of which the flow loses nothing."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns


def test_a_preview_answers_over_the_first_rows_and_takes_nothing(quick: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ann,1\nbob,2\nann,3\n")
    flow, source = ns.Flow("shop", quick), ns.memory("user string, at timestamp")
    purchases = flow.source("purchases", ns.files(tmp_path / "in" / "*.csv", schema="user string, price int"), stamp="came_at")
    people = flow.source("people", source, watermark=("at", "1 minute"))
    source.add([("ann", None), ("cleo", None)])
    spend = flow.view("spend", purchases.groupBy("user").agg(F.sum("price").alias("spent")))
    assert sorted(map(tuple, flow.preview(spend).collect())) == [("ann", 4), ("bob", 2)]
    assert flow.preview(purchases, rows=2).count() == 2
    joined = flow.preview(flow.sql("select p.user, s.spent from people p join spend s on p.user = s.user where s.spent > (select 3)"))
    assert [tuple(row) for row in joined.collect()] == [("ann", 4)]
    assert flow.preview(people.select("user")).count() == 2
    flow.view("known", people.select("user"))
    with flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        assert run.view("known").count() == 2 and run.view("spend").count() == 2
