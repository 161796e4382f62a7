"""Every aggregate function that Spark has: maintained as Spark answers it, under additions and removals."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.graph.operators import AccumulateNode
from nosync.testing import Change, check
from tests.queries import aggregate_calls as calls


def row(key: str | None, i: int | None, d: float | None, text: str | None) -> tuple[Any, ...]:
    whole = None if i is None else i * 7
    return key, i, whole, d, None if i is None else i > 1, text, None if i is None else Decimal(i) / 4, (text or "").encode()


FIRST = [row("a", 1, 1.5, "x"), row("a", 2, -2.5, "y"), row("a", 2, None, "x"), row("b", 5, 0.25, ""), row(None, None, None, None)]
MORE = [row("a", 4, 8.0, None), row("b", None, 3.0, "ä\0z"), row("c", 3, 3.0, "x"), row("c", 3, 3.0, "x")]
CHANGES = [
    Change({"s": FIRST}),
    Change({"s": MORE}, {"s": [FIRST[1], FIRST[3]]}),
    Change({}, {"s": [MORE[2], MORE[3], FIRST[4]]}),
    Change({}, {"s": [FIRST[0], FIRST[2], MORE[0], MORE[1]]}),
]
GROWING = [Change({"s": FIRST}), Change({"s": MORE})]


def columns(table: dict[str, str]) -> str:
    return ", ".join(f"{call} as `{name}`" for name, call in table.items())


def both(table: dict[str, str]) -> Any:
    """A program with the calls by key and over everything."""

    def program(flow: Any) -> None:
        flow.source("s")
        flow.sql(f"create view by_key as select k, {columns(table)} from s group by k")
        flow.sql(f"create view of_all as select {columns(table)} from s")

    return program


def test_the_table_of_calls_has_every_aggregate_function_of_spark(spark: SparkSession) -> None:
    registry = spark._jsparkSession.sessionState().functionRegistry()
    listed = registry.listFunction()
    infos = [registry.lookupFunction(listed.apply(i)).get() for i in range(listed.size())]
    assert {str(info.getName()) for info in infos if info.getGroup() == "agg_funcs"} <= calls.ALL.keys()


def test_accumulated_functions_under_removals(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, both(calls.FAST), {"s": calls.SCHEMA}, CHANGES, tmp_path)


def test_accumulated_functions_of_growing_input(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, both(calls.FAST | calls.ADD_ONLY), {"s": calls.SCHEMA}, GROWING, tmp_path)


@pytest.mark.parametrize("part", range(3))
def test_regrouped_functions_under_removals(quick: SparkSession, tmp_path: Path, part: int) -> None:
    chosen = dict(list((calls.REGROUPED | calls.ADD_ONLY).items())[part::3])
    check(quick, both(chosen), {"s": calls.SCHEMA}, CHANGES, tmp_path)


def test_sketches_merged_by_a_second_aggregate(quick: SparkSession, tmp_path: Path) -> None:
    made = {f"x{n}": inner for n, (inner, _) in enumerate(calls.MERGED.values())}
    merged = {name: outer.replace("(x", f"(x{n}") for n, (name, (_, outer)) in enumerate(calls.MERGED.items())}

    def program(flow: Any) -> None:
        flow.source("s")
        flow.sql(f"create view merged as select k, {columns(merged)} from (select k, i, {columns(made)} from s group by k, i) group by k")

    check(quick, program, {"s": calls.SCHEMA}, CHANGES, tmp_path, shards=1)


def among(expected: Any, actual: Any) -> bool:
    """Any row of the group, or null where the group has none."""
    return any(actual in one.values() for one in expected) if expected else actual is None


@pytest.mark.parametrize("changes", [CHANGES, GROWING], ids=["removals", "growing"])
def test_functions_with_several_right_answers_give_one_of_them(quick: SparkSession, tmp_path: Path, changes: list[Change]) -> None:
    asked, right = ({name: pair[n] for name, pair in calls.OPEN.items()} for n in (0, 1))
    check(
        quick, both(asked), {"s": calls.SCHEMA}, changes, tmp_path, expected=both(right), admissible=dict.fromkeys(calls.OPEN, among)
    )


def test_grouping_functions_over_rollup_cube_and_grouping_sets(quick: SparkSession, tmp_path: Path) -> None:
    def program(flow: Any) -> None:
        flow.source("s")
        many = "count(*), sum(d), max(s), median(i)"
        flow.sql(f"create view rolled as select k, i, {columns(calls.GROUPING)}, {many} from s group by rollup(k, i)")
        flow.sql("create view cubed as select k, b, grouping(b), count(*), sum(e) from s group by cube(k, b)")
        flow.sql("create view sets as select k, i, count(*), avg(d) from s group by grouping sets ((k), (i), ())")

    check(quick, program, {"s": calls.SCHEMA}, CHANGES, tmp_path, shards=3)


@pytest.mark.parametrize("name", [*calls.FAST, *calls.ADD_ONLY])
def test_has_an_accumulator(quick: SparkSession, name: str) -> None:
    source = ns.memory(calls.SCHEMA)
    source.append_only = name in calls.ADD_ONLY
    flow = ns.Flow("one", quick)
    flow.source("s", source, checked=False)
    flow.sql(f"create view v as select k, {calls.ALL[name]} from s group by k")
    assert all(isinstance(operator, AccumulateNode) for operator in flow._compiler.graph.operators)


@pytest.mark.parametrize("name", calls.NOT_CALLABLE)
def test_what_cannot_be_called_is_an_error_at_declaration(quick: SparkSession, name: str) -> None:
    flow = ns.Flow("one", quick)
    flow.source("s", ns.memory(calls.SCHEMA))
    with pytest.raises(ns.Invalid):
        flow.sql(f"create view v as select k, {calls.NOT_CALLABLE[name]} from s group by k")
