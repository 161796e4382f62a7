"""Queries that people seldom write and optimisers love to rewrite: at every epoch what Spark answers in batch."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.queries.join_cases import check_queries

FOLDED = [
    "select k, count(*) n from a where 1 = 0 group by k",
    "select count(*) n, max(t) t from a where false",
    "select a.k, b.y from a left join b on false",
    "select a.k, b.y from a left join b on a.x > 1 and a.k = b.k and b.y is null",
    "select a.k, u from a full join b on a.k = b.k and a.x > 1 and b.y < 2",
    "select a.k, u from a join b on true where a.x < 1",
    "select k, x from a limit 0",
    "select k from (select k, t, x, d from a order by k, t, x, d limit 5) order by k desc, t, x, d limit 3 offset 1",
    "select 'c' c, count(distinct 1) n, count(distinct k, 'x') m from a group by 'c'",
    "select k, row_number() over (partition by k order by x, t, d, s) r from a where false",
    "select grouping(k) g, k, t, count(*) n from a group by cube(k, t) having grouping(k) = 1 or count(*) > 1",
    "select sum(n) s from (select count(*) n from a union all select count(*) from b union all select 3L)",
]
NESTED = [
    "select a.k, m.y from a left join lateral (select y from b where b.k = a.k order by y, u, e, z limit 1) m",
    "select k, (select count(*) from b where b.k = a.k) n, (select count(*) from b where b.k = a.k and y > 1) more from a",
    "select * from (select k, t from a where t in ('a', 'b')) pivot (count(*) for t in ('a', 'b'))",
    "select k, name, value from (select k, x, cast(d as double) d from a) unpivot (value for name in (x, d))",
    "select l.k, l.n, r.n m from (select k, count(*) n from a group by k) l join (select k, count(*) n from a group by k) r on l.n = r.n",
    "select k from a where (k, t) in (select k, u from b) or x > (select avg(y) from b where b.u = a.t)",
    "select k, r from (select k, rank() over (partition by t order by k) r, ntile(2) over (partition by t order by k) from a) where r <= 2",
    "select k, sum(n) over (order by k) running from (select k, count(*) n from a group by k)",
    "select t, max(n) n from (select t, count(*) over (partition by k) n from a) group by t",
    "select k, u from (select k, t u from a except all select k, u from b) intersect all (select k, u from b union all select k, t from a)",
    "select b.k, c.n from b left anti join a on a.k = b.k left join (select k, count(*) n from a group by k) c on b.k <=> c.k",
    "select distinct k, max(x) over (partition by t) m from a where exists (select 1 from b where b.k <=> a.k and (y > x or y is null))",
]
DISTINCTS = [
    "select k, count(distinct t) p, count(distinct x) q, sum(x) s from a group by k",
    "select count(distinct t, x) p, sum(distinct x) q, count(distinct k) filter (where x > 1) f, count(*) n, max(t) m from a",
    "select t, count(distinct k) p, count(distinct x) filter (where k > 1) q, count(distinct x) r from a group by t having p > 1",
    "select k, t, count(distinct x) p, count(distinct d) q from a group by rollup(k, t)",
    "select gid, count(distinct t) p, sum(distinct x) q, min(t) m from (select k gid, t, x from a) group by gid",
]


@pytest.mark.parametrize("queries", [FOLDED, NESTED, DISTINCTS], ids=["folded", "nested", "distincts"])
def test_odd_queries(quick: SparkSession, tmp_path: Path, queries: list[str]) -> None:
    check_queries(quick, tmp_path, queries, 61, shards=2)
