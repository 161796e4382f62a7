"""Which way an epoch takes is chosen by what comes, and leaves no trace: not in the rows, not in the bits."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.bridge.kept_plans import Channel
from nosync.spark.ways import Ways, rows_of
from tests.longer import more
from tests.metamorphic import checksums, contents, run_all
from tests.spark.test_same_bits import rows

SCHEMA = "k string, g int, i bigint, d double, e decimal(12,3), b boolean"
EPOCHS = 6


def many_operators(spark: SparkSession) -> tuple[ns.Flow, Any, Any]:
    flow, source, other = ns.Flow("ways", spark), ns.memory(SCHEMA), ns.memory("k string, w int", removals=True)
    source.append_only = False
    s = flow.source("s", source, checked=False)
    o = flow.source("o", other)
    sums = flow.view("sums", s.groupBy("k").agg(F.sum("i").alias("i"), F.avg("d").alias("d"), F.count("*").alias("n")))
    flow.view("most", sums.groupBy("n").agg(F.max("i").alias("i"), F.expr("percentile(d, 0.5)").alias("d")))
    flow.view("joined", sums.join(o, "k", "full"))
    flow.view("near", s.alias("a").join(o.alias("b"), F.expr("a.k = b.k and a.g > b.w"), "left").select("a.k", "a.g", "b.w"))
    flow.view("different", s.select("k", "g").distinct())
    flow.view("stacked", sums.where("n > 1").select("k").union(o.select("k")))
    flow.sql("create view ranked as select k, i, row_number() over (partition by g order by i, k, d, e, b) as r from s")
    flow.sql("create view first as select k, w from o order by w, k limit 3")
    flow.sql("create view exploded as select k, x from s lateral view explode(sequence(0, abs(g))) as x where g is not null")
    flow.sql("create view whole as select count(*) as n, max(w) as w from o where w > 2")
    flow.view("folded", ns.fold(s.select("k", "i"), "k", counted, "n bigint", "k string, n bigint", order_by="i", retractions=True))
    return flow, source, other


def counted(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    n = (state.n if state else 0) + sum(row._diff for row in rows)
    return (n,) if n else None, [(key[0], n)]


def feeds(source: Any, other: Any, seed: int) -> list[Callable[[], None]]:
    chance = random.Random(seed)
    given = [rows(seed * 100 + epoch, 25) for epoch in range(EPOCHS)]
    words = ["a", "b", "日本", None, "rare1", "rare2"]

    def feed(epoch: int) -> None:
        if epoch % 3 != 2:
            source.add(given[epoch])
        if epoch:
            source.remove(given[epoch - 1][:10] if epoch % 3 != 0 else [])
        if epoch % 2 == 0:
            other.add([(word, chance.randint(0, 5)) for word in words])
        else:
            other.remove([(words[epoch % 6], w) for w in range(6)])

    return [lambda epoch=epoch: feed(epoch) for epoch in range(EPOCHS)]


@pytest.mark.parametrize("shards", [3, *more([1])])
def test_narrow_wide_and_both_in_turn_give_the_same_bits(quick: SparkSession, tmp_path: Path, shards: int) -> None:
    for way in ("narrow", "wide", "mixed"):
        flow, *sources = many_operators(quick)
        done = run_all(flow, tmp_path / way, feeds(*sources, seed=shards), shards=shards, way=way)
        assert {progress["way"] for progress in done} == ({"narrow", "wide"} if way == "mixed" else {way})
    for way in ("wide", "mixed"):
        assert checksums(tmp_path / "narrow") == checksums(tmp_path / way) != {}
        for epoch in range(1, EPOCHS + 1):
            assert contents(tmp_path / "narrow", at=epoch) == contents(tmp_path / way, at=epoch)


def test_what_is_not_touched_takes_no_part(quick: SparkSession, tmp_path: Path) -> None:
    flow, sources = ns.Flow("apart", quick), [ns.memory("k int, x int") for _ in range(4)]
    for number, source in enumerate(sources):
        flow.view(f"v{number}", flow.source(f"s{number}", source).groupBy("k").agg(F.sum("x").alias("x")))
    first, second = (lambda: [source.add([(1, 2)]) for source in sources]), (lambda: sources[2].add([(1, 3)]))
    done = run_all(flow, tmp_path, [first, second, lambda: sources[2].add([(1, 0)])], way="narrow")
    assert [[trace["operatorName"] for trace in progress["stateOperators"]] for progress in done[1:]] == [["v2/aggregate"]] * 2
    assert [len(ns.open(tmp_path).image.traces[f"v{number}/aggregate"]) for number in range(4)] == [1, 1, 1, 1]


def test_however_many_views_lie_side_by_side_spark_is_asked_once_for_all_of_them(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, run = [0], Channel.run

    def counting(channel: Channel, plans: Any) -> Any:
        asked[0] += 1
        return run(channel, plans)

    monkeypatch.setattr(Channel, "run", counting)

    def last_epoch(views: int) -> int:
        """How often Spark was asked for rows in it."""
        flow, source = ns.Flow("beside", quick), ns.memory("k int, x int")
        rows = flow.source("s", source)
        for number in range(views):
            sums = flow.view(f"v{number}", rows.groupBy((F.col("k") + number).alias("k")).agg(F.sum("x").alias("x")))
            flow.view(f"w{number}", sums.where("x > 1").select("x"))

        def feed(epoch: int) -> None:
            asked[0] = 0
            source.add([(epoch % 2, 2)])

        run_all(flow, tmp_path / str(views), [partial(feed, epoch) for epoch in range(4)], way="narrow")
        return asked[0]

    assert last_epoch(1) == last_epoch(6)


def test_rows_that_become_too_many_are_computed_by_a_job(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nosync.spark.narrow_state.HELD_ROWS", 50)
    flow, left, right = ns.Flow("many", quick), ns.memory("k int, x int"), ns.memory("k int, y int")
    flow.view("v", flow.source("l", left).join(flow.source("r", right), "k"))
    feed = [lambda: left.add([(1, x) for x in range(10)]), lambda: right.add([(1, y) for y in range(10)])]
    done = run_all(flow, tmp_path, feed, way="narrow")
    assert [progress["way"] for progress in done] == ["narrow", "wide"]
    assert len(contents(tmp_path)["v"]) == 100


def noted(ways: Ways, rows: int, millis: Callable[[str], float], epochs: int = 12) -> list[str]:
    """The ways of some epochs of one size."""
    chosen = []
    for epoch in range(epochs):
        way = ways.choose(epoch, rows)
        ways.note(way, rows, rows, millis(way))
        chosen.append(way)
    return chosen


def test_few_rows_go_narrow_and_many_wide_whatever_was_measured() -> None:
    ways = Ways()
    assert set(noted(ways, 1000, lambda way: 500.0 if way == "narrow" else 1.0)) == {"narrow"}
    assert set(noted(ways, 1_000_000, lambda way: 500.0 if way == "wide" else 1.0)) == {"wide"}
    assert ways.choose(1, 1000) == "narrow" and ways.choose(2, None) == "wide"


@pytest.mark.parametrize("rows", [10_000, 200_000])
@pytest.mark.parametrize("better", ["narrow", "wide"])
def test_between_the_two_the_way_that_took_less_time_is_taken(rows: int, better: str) -> None:
    chosen = noted(Ways(), rows, lambda way: 1500.0 if way == better else 2000.0)
    assert set(chosen[:3]) == {"narrow" if rows == 10_000 else "wide"} and set(chosen[3:6]) != set(chosen[:3])
    assert set(chosen[6:]) == {better}


def test_what_is_quick_is_not_compared() -> None:
    assert set(noted(Ways(), 10_000, lambda way: 900.0)) == {"narrow"}
    assert set(noted(Ways(), 100_000, lambda way: 900.0)) == {"narrow"}
    assert set(noted(Ways(), 200_000, lambda way: 900.0)) == {"wide"}


def test_what_tasks_read_themselves_goes_wide_earlier() -> None:
    assert Ways().choose(1, 100_000) == "narrow"
    assert Ways().choose(1, 100_000, direct=lambda: True) == "wide"
    assert Ways().choose(1, 10_000, direct=lambda: 1 / 0 > 0) == "narrow"  # not asked


def test_a_flow_whose_rows_multiply_on_the_way_goes_wide_until_they_do_no_more() -> None:
    ways = Ways()
    ways.note("narrow", rows=1000, busiest=500_000, millis=1.0)
    assert ways.choose(2, 1000) == "wide"
    chosen = []
    for epoch in range(3, 20):
        ways.note("wide", rows=1000, busiest=1000, millis=1.0)
        chosen.append(ways.choose(epoch, 1000))
    assert chosen[0] == "wide" and chosen[-1] == "narrow"


def test_rows_that_nobody_has_counted_are_known_by_their_bytes() -> None:
    assert rows_of([10, None], [0, 5000]) == 60
    assert rows_of([10, None], [0, 0]) is None


def test_a_way_that_there_is_not_is_refused() -> None:
    with pytest.raises(ns.Invalid, match=r"spark\.nosync\.way"):
        Ways("fast")
