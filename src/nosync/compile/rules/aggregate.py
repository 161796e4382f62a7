"""An Aggregate of Spark's plan as an operator: accumulators where `take_apart` finds them, else regroup."""

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from nosync.bridge.arrow import arrow_type
from nosync.bridge.catalyst import Java, children, data_type, items, kind
from nosync.compile.aggregate_calls import Parts, aggregate_expressions, rebind, take_apart
from nosync.compile.event_time import TimeKey, on_time, time_key
from nosync.compile.final_results import finalised, with_close
from nosync.compile.fingerprint import digest
from nosync.compile.regrouping import Regrouping
from nosync.compile.session_windows import closing_time, evaluation, gap_of, session_expiries, session_of, sessions
from nosync.compile.sliding_windows import PaneNode, SlidingNode, by_pane, pane_node, panes_of
from nosync.compile.source_columns import source_columns
from nosync.graph.lateness import OnTime
from nosync.graph.operators import AccumulateNode
from nosync.graph.templates import Branch, Hole, Template
from nosync.kernels.panes import Panes
from nosync.model.watermark import Expiry

if TYPE_CHECKING:
    from nosync.compile.query import Query


def aggregated(query: "Query", plan: Java) -> Template:
    """The aggregate's change; equal aggregates over equal inputs are one operator."""
    key = time_key(items(plan.groupingExpressions()))
    if key is None:
        return _aggregated(query, _by_keys_in_order(query, plan), query.arranged(children(plan)[0]))
    closing = with_close(query.catalyst, plan, key) if query.final or key.session else plan
    found = _timed(query, closing, key)
    output = items(plan.output())
    return found if closing is plan else found.under(query.catalyst.project([*output, *found.carried], query.catalyst.nowhere), output)


def _timed(query: "Query", plan: Java, key: TimeKey) -> Template:
    """An aggregate whose groups close: late rows are kept out, the state of closed groups expires. Of several the outermost is final."""
    final, query.final = query.final, False
    gap = gap_of(plan, key.attribute) if key.session else None
    key = replace(key, own_gaps=key.session and gap is None)
    panes = panes_of(plan, key, query.catalyst) if key.marked else None
    paned = _paned(query, plan, key, panes, final) if panes else None
    below = query.template(children(plan)[0]) if paned is None else None
    query.final = final
    if below is None:
        assert paned is not None
        return paned
    child = on_time(query, key, below) if key.marked else below
    known = len(query.operators)
    found = _aggregated(query, plan, child)
    if not isinstance(child.piece, OnTime):
        return found
    for node in query.operators[known:]:
        child.piece.reader = node.name
        expiry = Expiry(f"k{key.index}", child.piece.clock, time=key.words)
        node.expiries = session_expiries(plan, child, key.attribute, gap or 0) if key.session else (expiry,) * len(node.traces)
    closes = closing_time(query.catalyst, key.end(query.catalyst), gap) if gap else key.end(query.catalyst)
    return finalised(query, plan, found, child, closes, child.piece.clock) if final else found


def _paned(query: "Query", plan: Java, key: TimeKey, panes: Panes, final: bool) -> Template | None:
    """Sliding windows that share their panes, if all functions can be added up."""
    rows = by_pane(query, plan, query.template(children(children(plan)[0])[0]))
    parts = take_apart(query.catalyst, plan, rows.append_only)
    if parts is None:
        return None
    child, keys = on_time(query, key, rows), [query.key(expression) for expression in parts.grouping]
    assert isinstance(child.piece, OnTime)
    node = query.known(PaneNode, plan, [child]) if final else query.known(SlidingNode, plan, [child])
    if node is None:
        node = pane_node(query, plan, child, parts, keys, panes, child.piece.clock, final)
        child.piece.reader = node.name
        query.operators.append(node)
    query.finals += final
    return _results(query, plan, parts, keys, node)


def _aggregated(query: "Query", plan: Java, child: Template) -> Template:
    if session_of(plan) is not None:
        return sessions(query, plan, child)
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
        feed.fingerprint = digest(f"{query.plans.calls(plan, parts.found)} over {child.rows}")
        node = AccumulateNode(name=query.operator_name("aggregate"), feed=feed, schema=schema, view=query.view, plan=plan, spec=spec)
        node.source_columns = source_columns(child, spec, parts.grouping, parts.inputs)
        query.operators.append(node)
    return _results(query, plan, parts, keys, node)


def _results(query: "Query", plan: Java, parts: Parts, keys: list[Java], node: AccumulateNode) -> Template:
    """The operator's change in the form of the plan's columns."""
    key_columns = [query.catalyst.attribute(f"k{i}", key.dataType()) for i, key in enumerate(keys)]
    results = [query.catalyst.attribute(f"r{i}", call.dataType()) for i, call in enumerate(parts.found)]
    carried = query.carried(sharded=True)
    hole = Hole(node, key_columns + results + carried)
    named = [
        _named(query, e, rebind(query.catalyst, e, parts.grouping, key_columns, parts.found, results))
        for e in items(plan.aggregateExpressions())
    ]
    post = query.catalyst.project(named + carried, plan)
    return Template(Branch(post, [hole]), items(plan.output()), carried, append_only=node.append_only)


def _named(query: "Query", original: Java, bound: Java) -> Java:
    """The rebound expression under the original's name and identity."""
    inner = bound.child() if kind(bound) == "Alias" else bound
    return query.catalyst.alias(inner, original.name(), like=original)


def _regrouped(query: "Query", plan: Java, child: Template) -> Template:
    grouping = items(plan.groupingExpressions())
    regrouping = Regrouping(query, "regroup", [plan], child, [query.key(expression) for expression in grouping])
    empty = None if grouping else _arranged(query, plan)
    return regrouping.template(lambda gathered: evaluation(regrouping, grouping, gathered), empty=empty)


def _arranged(query: "Query", plan: Java) -> Java:
    """The aggregate with its columns in the order in which results are kept."""
    found = items(plan.aggregateExpressions())
    columns = query.catalyst.seq([found[i] for i in query.plans.arranged(plan)])
    return query.catalyst.logical.Aggregate(plan.groupingExpressions(), columns, children(plan)[0], plan.hint())


def _by_keys_in_order(query: "Query", plan: Java) -> Java:
    """Distinct rows are kept by all of their columns: in an order that does not depend on where the query has them."""
    keys = items(plan.groupingExpressions())
    marks = query.plans.marks(keys, plan)
    arranged = sorted(range(len(keys)), key=lambda i: (marks[i], i))
    if arranged == [*range(len(keys))] or any(aggregate_expressions(one) for one in items(plan.aggregateExpressions())):
        return plan
    logical, columns = query.catalyst.logical, plan.aggregateExpressions()
    return query.catalyst.read(logical.Aggregate(query.catalyst.seq([keys[i] for i in arranged]), columns, children(plan)[0], plan.hint()))
