"""Fingerprints: what computes something else, or from something else, is known by another."""

from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as F

import nosync as ns
from nosync.graph.nodes import ViewNode


def test_matches_in_another_source_are_another_state(quick: SparkSession) -> None:
    flow = ns.Flow("matches", quick)
    for name in ("a", "b", "c"):
        flow.source(name, ns.memory("k int, x int"))
    flow.sql("create view one as select * from a l left join b r on l.k = r.k and l.x < r.x")
    flow.sql("create view two as select * from a l left join c r on l.k = r.k and l.x < r.x")
    flow.sql("create view three as select * from c l full join b r on l.k = r.k and l.x < r.x")
    operators = flow.program().graph.operators
    assert [operator.kind for operator in operators] == ["join", "match", "join", "match", "join", "match", "match"]
    assert len({f"{operator.kind} {operator.fingerprint}" for operator in operators}) == len(operators)


def test_python_functions_of_one_name_are_told_apart_and_may_change_places(quick: SparkSession) -> None:
    one, other = F.udf(lambda n: n + 1, "int"), F.udf(lambda n: n + 2, "int")

    def declared(*columns: Column) -> ViewNode:
        flow = ns.Flow("f", quick)
        flow.view("v", flow.source("s", ns.memory("n int")).select(*columns))
        return flow.program().graph.views["v"]

    first, swapped = declared(one("n").alias("a"), other("n").alias("b")), declared(other("n").alias("b"), one("n").alias("a"))
    assert len(set(first.marks)) == 2 and first.fingerprint != swapped.fingerprint
    named = F.udf(abs, "int")
    moved = [declared(*columns).fingerprint for columns in ((one("n"), named("n")), (named("n"), one("n").alias("other")))]
    assert moved[0] == moved[1]


def test_what_says_the_same_among_other_rows_is_another_column(quick: SparkSession) -> None:
    flow = ns.Flow("f", quick)
    rows = flow.source("s", ns.memory("n int, m int"))
    inner = rows.groupBy("n", "m").agg(F.sum("m").alias("s"))
    flow.view("sums", inner.groupBy("n", "s").agg(F.sum("m").alias("t")))
    first = F.row_number().over(Window.partitionBy("n").orderBy("m"))
    flow.view("places", rows.withColumn("a", first).where("a > 1").withColumn("b", first))
    flow.view("sides", rows.alias("x").join(rows.alias("y"), F.expr("x.n = y.m")).select("x.n", "x.m", F.col("y.n"), F.col("y.m")))
    for view in flow.program().graph.views.values():
        assert len(set(view.marks)) == len(view.marks), view.marks
