"""Joins of every kind: at every epoch what Spark answers in batch, whatever comes and goes on either side."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nosync.testing import Change, check
from tests.longer import more
from tests.queries.join_cases import SCHEMAS, check_queries

EQUALITIES = ["a.k = b.k", "x = y", "t = u and d = e", "t <=> u", "s = z and a.k <=> b.k"]
KINDS = ["join", "left join", "right join", "full join", "left semi join", "left anti join"]


@pytest.mark.parametrize("seed", [0, 1, *more([2])])
def test_every_kind_of_join_on_equal_keys(quick: SparkSession, tmp_path: Path, seed: int) -> None:
    pairs = [(kind, EQUALITIES[(place + seed) % len(EQUALITIES)]) for place, kind in enumerate(KINDS)]
    queries = [f"select * from a {kind} b on {condition}" for kind, condition in pairs]
    queries += ["select *, exists (select 1 from b where b.k = a.k) as e from a", "select a.k, y from a cross join b where x < y"]
    check_queries(quick, tmp_path, queries, seed, shards=1 + 2 * seed)


CONDITIONS = ["a.k = b.k and x < y", "t <=> u and x <> y", "x < y"]


@pytest.mark.parametrize("seed", [1, *more([0])])
def test_every_kind_of_join_with_conditions_beyond_equal_keys(quick: SparkSession, tmp_path: Path, seed: int) -> None:
    pairs = [(kind, CONDITIONS[(place + seed) % len(CONDITIONS)]) for place, kind in enumerate(KINDS)]
    queries = [f"select * from a {kind} b on {condition}" for kind, condition in pairs]
    queries += [
        "select *, exists (select 1 from b where b.k = a.k and y >= x) as e from a",
        "select * from a where k not in (select k from b where y > 1)",
        "select l.k, l.x, r.t from a l full join a r on l.k = r.k and l.x < r.x",
    ]
    check_queries(quick, tmp_path, queries, 20 + seed, shards=1 + 3 * seed)


def test_a_key_that_most_rows_share(quick: SparkSession, tmp_path: Path) -> None:
    def program(flow: Any) -> None:
        flow.source("l")
        flow.source("r")
        for number, kind in enumerate(KINDS):
            flow.sql(f"create view v{number} as select * from l {kind} r on l.k = r.j and l.x % 3 <= r.y")

    hot = [(1, x) for x in range(1_500)]
    changes = [
        Change({"l": [*hot, (2, 5), (None, 6)], "r": [(2, 0), (3, 1)]}),
        Change({"r": [(1, 0), (1, 1), (1, 9), (None, 1)]}),
        Change({"l": [(1, 7), (3, 8)]}, {"l": hot[:400], "r": [(1, 1), (2, 0)]}),
        Change({}, {"l": hot[400:], "r": [(1, 9)]}),
    ]
    check(quick, program, {"l": "k int, x int", "r": "j int, y int"}, changes, tmp_path, shards=3)


def test_not_in_asks_for_emptiness_and_nulls_on_the_right(quick: SparkSession, tmp_path: Path) -> None:
    def program(flow: Any) -> None:
        flow.source("a")
        flow.source("b")
        flow.sql("create view one as select k from a where k not in (select k from b)")
        flow.sql("create view two as select k from a where (k, t) not in (select k, u from b)")
        flow.sql("create view other as select k from a where t = 'x' or k not in (select k from b)")

    a, b = ([(k, None, t, None, None) for k, t in rows] for rows in ([(1, "x"), (2, "y"), (None, "z")], [(1, "x"), (3, None), (None, "q")]))
    changes = [Change({"a": a}), Change({"b": b[:1]}), Change({"b": b[1:], "a": a[:1]}), Change({}, {"b": b[2:]}), Change({}, {"b": b[:2]})]
    check(quick, program, SCHEMAS, changes, tmp_path, 2)


def test_set_operations(quick: SparkSession, tmp_path: Path) -> None:
    sets = ["intersect", "except", "intersect all", "except all"]
    queries = [f"select k, t from a {operation} select k, u from b" for operation in sets]
    queries += ["select x from a except select y from b union select y from b where k = 1", "select * from a left semi join b"]
    check_queries(quick, tmp_path, [*queries, "select * from a left anti join b"], 31, shards=2)


def test_joins_nest_with_aggregates_unions_and_each_other(quick: SparkSession, tmp_path: Path) -> None:
    queries = [
        "select l.k, l.t, r.x from a l join a r on l.k = r.k",
        "select one.k, n, total from (select k, count(*) n from a group by k) one full join (select k, sum(e) total from b group by k) two"
        " on one.k = two.k",
        "select t, count(*) n, max(y) most, collect_set(e) es from a join b on a.k = b.k and x <= y group by t",
        "select a.t, b.u, c.x from a join b on a.k = b.k left join (select k, x from a where x > 0 union all select k, y from b) c"
        " on c.k = b.k",
        "select k, count(*) from (select k from v0 union all select k from v1 where n > 1) group by k",
        "select a.k, most from a cross join (select max(y) most, count(*) n from b) where x < most or n < 4",
        "select a.k, most from (select max(y) most from b) right join a on x < most",
        "select a.k, name from a left join values (1, 'one'), (2, 'two'), (9, 'nine') as names(k, name) on a.k = names.k",
    ]
    check_queries(quick, tmp_path, queries, 7, shards=3)
