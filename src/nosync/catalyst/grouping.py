"""An Aggregate of Spark's plan as an operator: accumulators where `take_apart` finds them, else regroup."""

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from nosync.catalyst.aggregates import Parts, rebind, take_apart
from nosync.catalyst.arrow import arrow_schema, arrow_type
from nosync.catalyst.bridge import Java, children, data_type, items, kind
from nosync.catalyst.fingerprint import fingerprint, text
from nosync.catalyst.graph import GHOST, HASH, ROW, Branch, GatheredNode, Hole, Template
from nosync.catalyst.operators import AccumulateNode, RegroupNode
from nosync.catalyst.plain import plain_columns
from nosync.catalyst.refusal import check_key
from nosync.model.errors import Refused

if TYPE_CHECKING:
    from nosync.catalyst.query import Query


def aggregated(query: "Query", plan: Java) -> Template:
    """The aggregate's change; equal aggregates over equal inputs are one operator."""
    child = query.template(children(plan)[0])
    parts = take_apart(query.catalyst, plan, child.append_only)
    if parts is None:
        return _regrouped(query, plan, child)
    return _accumulated(query, plan, child, parts)


def _accumulated(query: "Query", plan: Java, child: Template, parts: Parts) -> Template:
    keys = [_key(query, expression) for expression in parts.grouping]
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


def _key(query: "Query", expression: Java) -> Java:
    if kind(expression) == "AttributeReference" and expression.metadata().contains("spark.sessionWindow"):
        raise Refused(
            f'view "{query.view}" groups by session_window, which cannot be maintained yet',
            hint="Use window(...) with a fixed length, or group into sessions when reading the view.",
        )
    check_key(data_type(expression), str(expression.sql()), query.view)
    return query.catalyst.normalised(expression)


def _regrouped(query: "Query", plan: Java, child: Template) -> Template:
    node = query.known(RegroupNode, plan, [child]) or _regroup_node(query, plan, child)
    carried = query.carried(placed=True)
    output = items(plan.output())
    return Template(Hole(node, output + carried), output, carried, append_only=False)


def _regroup_node(query: "Query", plan: Java, child: Template) -> RegroupNode:
    grouping, name = items(plan.groupingExpressions()), query.operator_name("regroup")
    keys = [_key(query, expression) for expression in grouping]
    rows = StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(child.output)])
    feed = query.feed(child, keys, [("k", keys), ("c", child.output)], rows=True)
    feed.fingerprint = fingerprint(text(plan, deep=False), [child])
    key_types = [(f"k{i}", arrow_type(data_type(k), str(k.sql()))) for i, k in enumerate(keys)]
    payload = pa.schema(key_types + [(f.name, f.type) for f in arrow_schema(rows, f'view "{query.view}"')])
    gathered = GatheredNode(name, rows.add(GHOST, "boolean", False))
    output = items(plan.output())
    schema = StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(output)])
    settled = pa.schema(key_types + [(f.name, f.type) for f in arrow_schema(schema, f'view "{query.view}"')])
    evaluate = _evaluation(query, plan, child, gathered, grouping, output)
    empty = None if grouping else plan
    node = RegroupNode(
        name=name, feed=feed, schema=schema, view=query.view, plan=plan,
        evaluate=evaluate, gathered=gathered, payload=payload, settled=settled, keys=len(keys), empty=empty,
    )  # fmt: skip
    query.operators.append(node)
    return node


def _evaluation(query: "Query", plan: Java, child: Template, gathered: GatheredNode, grouping: list[Java], output: list[Java]) -> Branch:
    """Spark's own Aggregate over the gathered rows. A ghost row stands for a group that has become empty."""
    ghost = query.catalyst.attribute(GHOST, query.catalyst.types.BooleanType, nullable=False)
    keys = [query.catalyst.alias(key, f"k{i}") for i, key in enumerate(grouping)]
    expressions = [*items(plan.aggregateExpressions()), *keys, ghost]
    seq, below = query.catalyst.seq, children(plan)[0]
    whole = query.catalyst.logical.Aggregate(seq([*grouping, ghost]), seq(expressions), below, plan.hint())
    normal = [query.catalyst.normalised(key.toAttribute()) for key in keys]
    columns = [query.catalyst.alias(key, f"k{i}") for i, key in enumerate(normal)]
    columns += [query.catalyst.alias(a, f"c{i}") for i, a in enumerate(output)]
    columns += [query.catalyst.alias(query.catalyst.hash(normal), HASH), query.catalyst.alias(query.catalyst.hash(output), ROW), ghost]
    hole = Hole(gathered, [*child.output, ghost])
    return Branch(query.catalyst.project(columns, query.catalyst.nowhere), [Branch(whole, [hole])])
