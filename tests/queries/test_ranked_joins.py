"""Joins with the nearest rows: at every epoch what Spark answers in batch. Where rows are equally near, only how near is compared."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from tests.queries.join_cases import check_queries

QUERIES = [
    "select a.*, abs(d - e) as apart from a join b approx nearest 2 by distance abs(d - e)",
    "select a.k, a.t, abs(d - e) as apart from a left join b exact nearest by similarity -abs(d - e)",
    "select l.t, r.d from a l join a r exact nearest 3 by distance r.d where l.k > 1",
    "select count(*) as n from (select b.k from b join a approx nearest 2 by distance abs(x - y)) where k is not null",
    "select a.k, a.d, b.e from a asof join b match_condition (a.d >= b.e) on a.k = b.k",
    "select a.k, a.t, a.d, b.e, b.k is null as none from a left asof join b match_condition (a.d < b.e) on a.t = b.u and b.y > 1",
    "select k, t from a where d > (select max(y) from b asof join a c match_condition (b.e > c.d)) or exists"
    " (select 1 from b join b c approx nearest 1 by distance b.k - c.k where b.u = a.t)",
    "select a.d, b.u from a asof join b match_condition (a.t > b.u)",
    "with c as (select a.d, b.e from a asof join b match_condition (a.d <= b.e)) select l.d, count(*) n from c l join c r using (d)"
    " group by l.d",
]


@pytest.fixture
def asof(quick: SparkSession) -> SparkSession:
    quick.conf.set("spark.sql.join.asofJoin.enabled", "true")
    return quick


@pytest.mark.parametrize("seed", range(2))
def test_the_nearest_rows_follow_what_comes_and_goes(asof: SparkSession, tmp_path: Path, seed: int) -> None:
    check_queries(asof, tmp_path, QUERIES[seed::2], 80 + seed, shards=2)


def test_columns_that_cannot_be_compared_are_refused(quick: SparkSession) -> None:
    flow = ns.Flow("maps", quick)
    flow.source("a", ns.memory("k int, m map<int,int>"))
    with pytest.raises(ns.Refused, match='joins rows with a column "m" of type MAP<INT, INT> to their nearest') as error:
        flow.sql("create view v as select * from a l join a r approx nearest 1 by distance l.k - r.k")
    assert "Leave the column out" in error.value.hint
