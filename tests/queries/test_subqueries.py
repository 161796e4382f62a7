"""Scalar subqueries, in and exists: at every epoch what Spark answers in batch."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.testing import Change, check
from tests.queries.join_cases import SCHEMAS, check_queries

QUERIES = [
    "select * from a where d > (select avg(e) from b)",
    "select k, (select max(y) from b) as most, (select count(v) from (select u v from b)) + (select count(v) from (select e v from b)) as n"
    " from a",
    "select t, sum(d) > (select min(e) from b) as more, sum(d + (select max(k) from b)) as s from a group by t"
    " having count(*) > (select min(k) from b)",
    "select a.k, u from a left join b on a.k = b.k and x < (select max(y) from b)",
    "select * from a where exists (select 1 from b where y > 1)",
    "select * from a where k = 2 or not exists (select 1 from b where y > 1)",
    "select t, (select sum(e) from b where b.k = a.k) as s from a",
    "select * from a where k = 2 or k in (select k from b where y > (select min(x) from a))",
    "select (select max(k) from a) - (select max(k) from b) as apart",
    "select k, x from a where x = (select max(l.x) from a l where l.k = a.k)",
]
LIMITED = [
    "select * from a where exists (select 1 from b where b.u = a.t limit 2)",
    "select * from a where exists (select 1 from b where b.u = a.t order by k, y, e, z limit 1 offset 1)",
    "select * from a where not exists (select u from b where b.u = a.t offset 1)",
    "select * from a where t in (select max(u) from b where b.u = a.t group by e limit 3)",
    "select a.t, count(*) n from a, lateral (select y from b where b.u = a.t limit 2) m group by a.t",
    "select a.k, m.y from a left join lateral (select y from b where b.u = a.t order by y desc nulls last limit 1) m",
    "select a.k, m.e from a left join lateral (select e from b where b.u = a.t order by y desc nulls last, k, e, z limit 1) m",
]
KEYS = [
    "select (select max(k) from b) as m, count(*) as n from a group by m",
    "select (select max(k) from b), t, sum(d) as s from a group by 1, 2",
    "select t, (select min(e) from b) as m, count(*) as n from a group by all",
    "select k + (select count(*) from b) as c, (select max(y) from b) as m, count(*) as n from a group by c"
    " having c > (select min(k) from b)",
]


@pytest.mark.parametrize("queries", [LIMITED, KEYS], ids=["limited", "keys"])
def test_subqueries_with_limits_and_as_keys(quick: SparkSession, tmp_path: Path, queries: list[str]) -> None:
    check_queries(quick, tmp_path, queries, 45, shards=2)


@pytest.mark.parametrize("seed", range(2))
def test_subqueries_everywhere(quick: SparkSession, tmp_path: Path, seed: int) -> None:
    check_queries(quick, tmp_path, QUERIES[seed::2], 40 + seed, shards=2 + seed)


def test_a_subquery_without_a_row_is_null(quick: SparkSession, tmp_path: Path) -> None:
    def program(flow: ns.Flow) -> None:
        flow.source("a")
        flow.source("b")
        flow.sql("create view plain as select k, (select y from b where u = 'only') as v from a")
        flow.sql("create view related as select k, (select y from b where b.k = a.k) as v from a")

    rows = [(k, float(k), "only" if k == 1 else "t", None, None) for k in range(3)]
    changes = [Change({"a": rows}), Change({"b": rows[1:]}), Change({"a": rows}, {"b": rows[1:2]})]
    check(quick, program, SCHEMAS, changes, tmp_path, 2)


@pytest.mark.parametrize("where", ["u = 'twice'", "b.k = a.k"])
def test_a_subquery_with_two_rows_is_an_error(quick: SparkSession, tmp_path: Path, where: str) -> None:
    flow, a, b = ns.Flow("f", quick), ns.memory("k int"), ns.memory("k int, u string")
    flow.source("a", a)
    flow.source("b", b)
    flow.sql(f"create view v as select (select u from b where {where}) as u from a")
    run = flow.start(home=tmp_path, shards=2)
    a.add([(1,)])
    b.add([(1, "twice")])
    run.processAllAvailable()
    b.add([(1, "twice")])
    with pytest.raises(ns.Failed, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        run.processAllAvailable()
    assert ns.open(tmp_path).view("v").to_pylist() == [{"u": "twice"}]


def test_a_clock_inside_a_subquery_is_refused(quick: SparkSession) -> None:
    flow = ns.Flow("f", quick)
    flow.source("a", ns.memory("k int"))
    with pytest.raises(ns.Refused, match="clock"):
        flow.sql("create view v as select k from a where k < (select max(unix_timestamp()) from a)")
