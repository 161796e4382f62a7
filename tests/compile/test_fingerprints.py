"""Fingerprints: what computes something else, or from something else, is known by another."""

from pyspark.sql import SparkSession

import nosync as ns


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
