"""Trees taken over in one call: what they say is what the JVM would have said, and how many calls a declaration takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

import nosync as ns
from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.bridge.declaring import Declaring
from nosync.bridge.errors import JavaError
from nosync.bridge.frames import analyzed, optimized

QUERIES = [
    'select k, sum(x) filter (where t like "%\\n\\"%") s, max(named_struct("ä", t)) m from a group by k having count(*) > 1',
    "select l.k, r.t, row_number() over (partition by l.k order by r.x desc) n from a l left join a r on l.k = r.k and l.x < r.x",
    "select k, grouping(t) g, count(distinct x) n, transform(array(k), e -> e + 1) p from a group by cube(k, t), array(k)",
    "select * from a where x > (select avg(x) from a) and k in (select k from a where t is null) limit 3",
]
FACTS = ("nullable", "deterministic", "sql", "dataType")


@contextmanager
def counted() -> Iterator[list[int]]:
    calls, send = [0], JavaClient.send_command

    def counting(self: JavaClient, command: str, *arguments: Any, **named: Any) -> Any:
        calls[0] += not command.startswith("m\nd\n")
        return send(self, command, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JavaClient, "send_command", counting)
        yield calls


@pytest.mark.parametrize("query", QUERIES)
def test_a_known_tree_says_what_the_jvm_says(quick: SparkSession, query: str) -> None:
    quick.createDataFrame([], "k int, x double, t string").createOrReplaceTempView("a")
    frame, catalyst = quick.sql(query), Declaring(quick)
    for plan in (analyzed(frame), optimized(frame)):
        known = catalyst.read(plan)
        assert catalyst.read(plan) is known
        _compare(known, plan)
    quick.catalog.dropTempView("a")


def _compare(known: Java, plan: Java) -> None:
    """Node by node. Of many attributes that are one object in the JVM there is one here."""
    assert kind(known) == kind(plan)
    assert [str(a.exprId().toString()) for a in items(known.output())] == [str(a.exprId().toString()) for a in items(plan.output())]
    for one, other in zip(items(known.expressions()), items(plan.expressions()), strict=True):
        _compare_expressions(one, other)
    for one, other in zip(children(known), children(plan), strict=True):
        _compare(one, other)


def _compare_expressions(known: Java, expression: Java) -> None:
    assert kind(known) == kind(expression)
    assert known.equals(expression)
    assert [_said(known, fact) for fact in FACTS] == [_said(expression, fact) for fact in FACTS]
    for one, other in zip(children(known), children(expression), strict=True):
        _compare_expressions(one, other)


def _said(expression: Java, fact: str) -> Any:
    """What an expression answers; some refuse to say what type they have."""
    try:
        answer = getattr(expression, fact)()
        return str(answer.json()) if fact == "dataType" else answer
    except JavaError:
        return None


def test_what_was_made_of_known_parts_is_a_plan_again(quick: SparkSession) -> None:
    for catalyst in (Catalyst(quick), Declaring(quick)):
        rows = catalyst.read(optimized(quick.range(3).selectExpr("id", "id * 2 as twice")))
        [column] = catalyst.aliases([(items(rows.output())[1], 'a "name"\twith\\ all')])
        frame = catalyst.frame(catalyst.project([*items(rows.output()), column], rows))
        assert (frame.columns[2], [row[2] for row in frame.collect()]) == ('a "name"\twith\\ all', [0, 2, 4])


def test_wide_rows_take_no_more_calls_than_narrow_ones(quick: SparkSession) -> None:
    spent = []
    for width in (4, 40):
        flow = ns.Flow("wide", quick)
        a, b = (flow.source(name, ns.memory(", ".join(f"{name}{i} int" for i in range(width)))) for name in "ab")
        query = a.join(b, a.a0 == b.b0).where("a1 > b1")
        with counted() as calls:
            flow.view("v", query)
        spent.append(calls[0])
    assert spent[1] <= spent[0] + 10, spent
