"""A program that is declared again is the same program, whatever numbers Spark gives out."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns

NUMBERED = "select case when length(t) between 2 and 4 then 'b' when upper(t) between 'A' and 'B' then '' end, count(*) n from s group by 1"


ALIKE = [  # Spark prints both the same
    ("n + m", "try_add(n, m)"),
    ("n / m", "try_divide(n, m)"),
    ("a[0]", "get(a, 0)"),
    ("element_at(a, 1)", "try_element_at(a, 1)"),
    ("from_json(t, 'x int').x", "from_json(t, 'x int', map('mode', 'FAILFAST')).x"),
    ("from_csv(t, 'x int, y int').y", "from_csv(t, 'x int, y int', map('sep', ';')).y"),
    ("to_csv(named_struct('a', n, 'b', m))", "to_csv(named_struct('a', n, 'b', m), map('sep', ';'))"),
    ("to_json(named_struct('t', n))", "to_json(named_struct('t', n), map('ignoreNullFields', 'false'))"),
    ("first(n)", "first(n, true)"),
    ("any_value(n)", "any_value(n, true)"),
    ("sum(n)", "try_sum(n)"),
    ("approx_count_distinct(n, 0.1)", "approx_count_distinct(n, 0.2)"),
    ("lag(n) over (partition by m order by n)", "lag(n) ignore nulls over (partition by m order by n)"),
    ("explode(a)", "explode_outer(a)"),
    ("from_csv(t, 'a int, b int').a", "from_csv(t, 'b int, a int').a"),
    ("percentile_cont(0.2) within group (order by n)", "percentile_cont(0.2) within group (order by n desc)"),
    ("percentile_disc(0.2) within group (order by n)", "percentile_disc(0.2) within group (order by n desc)"),
]


def _fingerprints(spark: SparkSession, query: str) -> dict[str, str]:
    flow = ns.Flow("f", spark)
    flow.source("s", ns.memory("a array<int>, b array<int>, n int, m int, t string"))
    flow.sql(f"create view v as {query}")
    return flow.program().declaration(1).fingerprints


def test_a_lambda_whose_variables_change_places_is_another_program(quick: SparkSession) -> None:
    queries = [f"select zip_with(a, b, (x, y) -> {body}) c, count(*) n from s group by 1" for body in ("x - y", "y - x", "x - x")]
    one, other, third = (_fingerprints(quick, query) for query in queries)
    assert one != other and one != third and other != third
    assert one == _fingerprints(quick, queries[0].replace("x", "p").replace("y", "q").replace("bq", "by"))


def test_calls_that_spark_prints_alike_are_different_programs(quick: SparkSession) -> None:
    for one, other in ALIKE:
        first, second, again = (_fingerprints(quick, f"select {call} c from s") for call in (one, other, one))
        assert first != second and first == again, (one, other)


def test_a_table_in_the_query_counts_by_its_rows(quick: SparkSession) -> None:
    one, again, other, maps, same = (
        _fingerprints(quick, f"select n, y from s join (values (1, {value}), (2, {value})) v(x, y) on n = x")
        for value in ("3", "3", "4", "map('a', array(1))", "map('a', array(1))")
    )
    assert one == again and one != other and maps == same


def test_a_function_that_returns_another_type_is_another_program(quick: SparkSession) -> None:
    def declared(type: str) -> dict[str, str]:
        flow = ns.Flow("f", quick)
        flow.view("v", flow.source("s", ns.memory("n int")).select(F.udf(lambda n: n, type)("n").alias("c")))
        return flow.program().declaration(1).fingerprints

    assert declared("int") != declared("bigint") and declared("int") == declared("int")


def test_a_query_whose_common_expressions_are_numbered_anew_is_the_same(quick: SparkSession, tmp_path: Path) -> None:
    def flow() -> tuple[ns.Flow, ns.Source]:
        declared, rows = ns.Flow("f", quick), ns.memory("t string")
        declared.source("s", rows)
        declared.sql(f"create view v as {NUMBERED}")
        return declared, rows

    for _ in range(2):
        declared, rows = flow()
        with declared.start(home=tmp_path, shards=1) as run:
            rows.add([("abc",), ("a",)])
            run.processAllAvailable()
    assert sorted(row["n"] for row in ns.open(tmp_path).view("v").to_pylist()) == [2, 2]


def test_distinct_aggregates_side_by_side_are_the_same_program_each_time(quick: SparkSession) -> None:
    query = "select t, count(distinct n) x, sum(distinct m) y, count(distinct n, m) z, sum(n) s, count(distinct m) filter (where n > 1) f"
    found = set()
    for _ in range(8):
        quick.range(3).selectExpr("id + 1 as x")  # takes some of the numbers that Spark gives out
        found.add(str(_fingerprints(quick, f"{query} from s group by t")))
    assert len(found) == 1
    assert found != {str(_fingerprints(quick, f"{query.replace('sum(distinct m)', 'avg(distinct m)')} from s group by t"))}
