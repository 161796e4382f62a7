"""What a flow says of itself: what each operator keeps and why, what an epoch costs, and the figures of a run."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.observe.figures import figures_of


def shop(spark: SparkSession, folder: Path) -> tuple[ns.Flow, object]:
    flow = ns.Flow("shop", spark)
    source = ns.memory("user string, price int, item string", removals=True)
    rows = flow.source("purchases", source, checked=False)
    users = flow.source("users", ns.memory("user string, city string"))
    spend = flow.view("spend", rows.where("price > 0").groupBy("user").agg(F.sum("price").alias("spent")))
    flow.view("whales", spend.where("spent > 10"))
    flow.view("dearest", rows.groupBy("user").agg(F.max("price").alias("price")))
    flow.view("items", rows.groupBy("user").agg(F.countDistinct("item").alias("items"), F.expr("percentile(price, 0.5)").alias("middle")))
    flow.view("places", rows.join(users, "user").select("city", "price"))
    flow.view("unseen", users.alias("u").join(rows.alias("r"), F.expr("u.user = r.user and r.price > length(u.city)"), "left_anti"))
    flow.view("pairs", users.alias("a").join(users.alias("b"), F.expr("a.city < b.city")).select("a.user"))
    flow.view("once", rows.select("user").distinct())
    clicks = flow.source("clicks", ns.memory("at timestamp"), watermark=("at", "5 seconds"))
    flow.view("minutes", clicks.groupBy(F.window("at", "1 minute")).count())
    flow.view("clicked", clicks.groupBy().count())
    flow.view("twice", clicks.alias("a").join(clicks.alias("b"), F.expr("a.at <> b.at")).select("a.at"))
    flow.sink("changes", spend, ns.parquet(folder / "out"))
    return flow, source


def test_a_flow_says_of_each_operator_what_it_keeps_why_and_what_it_costs(
    quick: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, source = shop(quick, tmp_path)
    flow.explain(svg=tmp_path / "flow.svg")
    reported = capsys.readouterr().out
    for words in (
        "keeps  accumulators by key",
        "why    max(price) under removals: the next best may be any row of the group",
        "keeps  the rows of each group, and its last result",
        "costs  in proportion to the touched groups",
        "why    count(DISTINCT item): only the rows say which values are still there",
        "keeps  both sides by key",
        "keeps  the number of matches by row",
        "keeps  both sides, as one group",
        "keeps  how often each row occurs",
        "kept   until the watermark has passed window.end",
        "kept   for ever, because no source of it has a watermark",
        "kept   for ever, because no key of its groups is an event time",
        "kept   for ever, because neither its keys nor its condition bound event time on both sides",
        "after  where the watermark has not passed",
        "after  where ((price IS NOT NULL) AND (price > 0))",
        "keeps  nothing: rows are finished from spend/aggregate while reading",
        "is     precise, released when safe: one file an epoch",
        "source purchases\n",
    ):
        assert words in reported, reported
    assert "spend/aggregate" in (tmp_path / "flow.svg").read_text()
    with flow.start(tmp_path / "home", shards=1) as run:
        source.add([("ann", 7, "pen"), ("bob", 20, "ink")])  # type: ignore[attr-defined]
        run.processAllAvailable()
        run.explain()
    reported = capsys.readouterr().out
    assert "2 rows in 1 layers" in reported
    assert "of the last 1 epochs 1 narrow, 0 wide; the newest narrow" in reported
    home = ns.open(tmp_path / "home")
    assert home.picture == flow.program().picture()
    assert figures_of(home.picture, home.image)["operator spend/aggregate"].rows == 2
