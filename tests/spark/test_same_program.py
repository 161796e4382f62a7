"""A program that is declared again is the same program, whatever numbers Spark gives out."""

from pathlib import Path

from pyspark.sql import SparkSession

import nosync as ns

NUMBERED = "select case when length(t) between 2 and 4 then 'b' when upper(t) between 'A' and 'B' then '' end, count(*) n from s group by 1"


def _operators(spark: SparkSession, query: str) -> dict[str, str]:
    flow = ns.Flow("f", spark)
    flow.source("s", ns.memory("a array<int>, b array<int>"))
    flow.sql(f"create view v as {query}")
    return flow.program().declaration(1).operators


def test_a_lambda_whose_variables_change_places_is_another_program(quick: SparkSession) -> None:
    queries = [f"select zip_with(a, b, (x, y) -> {body}) c, count(*) n from s group by 1" for body in ("x - y", "y - x", "x - x")]
    one, other, third = (_operators(quick, query) for query in queries)
    assert one != other and one != third and other != third
    assert one == _operators(quick, queries[0].replace("x", "p").replace("y", "q").replace("bq", "by"))


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
