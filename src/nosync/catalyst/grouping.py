"""An Aggregate of Spark's plan as an operator: accumulators where `take_apart` finds them, else regroup."""

from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from nosync.catalyst.aggregates import Parts, rebind, take_apart
from nosync.catalyst.arrow import arrow_type
from nosync.catalyst.bridge import Java, children, data_type, items, kind
from nosync.catalyst.event_time import OnTime, TimeKey, on_time, time_key
from nosync.catalyst.fingerprint import fingerprint, text
from nosync.catalyst.graph import GHOST, Branch, GatheredNode, Hole, Template
from nosync.catalyst.operators import AccumulateNode
from nosync.catalyst.plain import plain_columns
from nosync.catalyst.regrouping import Regrouping, results
from nosync.model.watermark import Expiry

if TYPE_CHECKING:
    from nosync.catalyst.query import Query


def aggregated(query: "Query", plan: Java) -> Template:
    """The aggregate's change; equal aggregates over equal inputs are one operator."""
    key = time_key(plan)
    if key is None:
        return _aggregated(query, plan, query.template(children(plan)[0]))
    return _timed(query, plan, key)


def _timed(query: "Query", plan: Java, key: TimeKey) -> Template:
    """An aggregate whose groups close: late rows are kept out, and the state of closed groups expires."""
    child = on_time(query, key, query.template(children(plan)[0]))
    known = len(query.operators)
    found = _aggregated(query, plan, child)
    for node in query.operators[known:]:
        assert isinstance(child.piece, OnTime)
        child.piece.operator = node.name
        node.expiries = dict.fromkeys(node.traces, Expiry(f"k{key.place}", child.piece.clock))
    return found


def _aggregated(query: "Query", plan: Java, child: Template) -> Template:
    parts = take_apart(query.catalyst, plan, child.append_only)
    if parts is None:
        return _regrouped(query, plan, child)
    return _accumulated(query, plan, child, parts)


def _accumulated(query: "Query", plan: Java, child: Template, parts: Parts) -> Template:
    keys = [query.key(expression) for expression in parts.grouping]
    node = query.known(AccumulateNode, plan, [child])
    if node is None:
        types = [arrow_type(data_type(key), str(key.sql())) for key in keys]
        spec = parts.accumulation(types)
        columns = [("k", i, data_type(key)) for i, key in enumerate(keys)] + [
            ("r", i, data_type(call)) for i, call in enumerate(parts.found)
        ]
        schema = StructType([StructField(f"{letter}{i}", type) for letter, i, type in columns])
        feed = query.feed(child, keys, [("k", keys), ("i", parts.inputs)], rows=False)
        feed.fingerprint = fingerprint(text(plan, deep=False), [child])
        node = AccumulateNode(name=query.operator_name("aggregate"), feed=feed, schema=schema, view=query.view, plan=plan, spec=spec)
        node.plain = plain_columns(child, spec, parts.grouping, parts.inputs)
        query.operators.append(node)
    key_columns = [query.catalyst.attribute(f"k{i}", key.dataType()) for i, key in enumerate(keys)]
    results = [query.catalyst.attribute(f"r{i}", call.dataType()) for i, call in enumerate(parts.found)]
    carried = query.carried(placed=True)
    hole = Hole(node, key_columns + results + carried)
    named = [
        _named(query, e, rebind(query.catalyst, e, parts.grouping, key_columns, parts.found, results))
        for e in items(plan.aggregateExpressions())
    ]
    post = query.catalyst.project(named + carried, plan)
    return Template(Branch(post, [hole]), items(plan.output()), carried, append_only=False)


def _named(query: "Query", original: Java, bound: Java) -> Java:
    """The rebound expression under the original's name and identity."""
    inner = bound.child() if kind(bound) == "Alias" else bound
    return query.catalyst.alias(inner, original.name(), like=original)


def _regrouped(query: "Query", plan: Java, child: Template) -> Template:
    grouping = items(plan.groupingExpressions())
    regrouping = Regrouping(query, "regroup", [plan], child, [query.key(expression) for expression in grouping])
    return regrouping.template(lambda gathered: _evaluation(regrouping, grouping, gathered), empty=None if grouping else plan)


def _evaluation(regrouping: Regrouping, grouping: list[Java], gathered: GatheredNode) -> Branch:
    """Spark's own Aggregate over the gathered rows. A ghost row stands for a group that has become empty."""
    catalyst, plan = regrouping.query.catalyst, regrouping.plan
    ghost = catalyst.attribute(GHOST, catalyst.types.BooleanType, nullable=False)
    keys = [catalyst.alias(key, f"k{i}") for i, key in enumerate(grouping)]
    expressions = [*items(plan.aggregateExpressions()), *keys, ghost]
    seq, below = catalyst.seq, children(plan)[0]
    whole = catalyst.logical.Aggregate(seq([*grouping, ghost]), seq(expressions), below, plan.hint())
    normal = [catalyst.normalised(key.toAttribute()) for key in keys]
    hole = Hole(gathered, [*regrouping.child.output, ghost])
    return Branch(results(catalyst, normal, regrouping.output, ghost), [Branch(whole, [hole])])
