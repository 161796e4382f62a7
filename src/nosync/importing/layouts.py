"""What Spark's state of an operator of ours would look like, had a query of Structured Streaming kept it.

A checkpoint says nothing of the query that made it. So state is known by its form: the names and types of keys, the names and types of
aggregation buffers in the order in which the query has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructType

from nosync.bridge.catalyst import Java, children, data_type, items, kind
from nosync.compile.aggregate_calls import aggregate_expressions, distinct_calls
from nosync.graph.nodes import Node
from nosync.graph.operators import AccumulateNode, RegroupNode
from nosync.importing.accumulators import Buffers, remark
from nosync.importing.stored_state import AGGREGATE, DEDUPLICATION, WITHIN_WATERMARK, StoredState

NAMED = ("AttributeReference", "Alias")
Column = tuple[str, str]  # a name and a type, in Spark's words


@dataclass(frozen=True)
class Layout:
    """`buffers` say which of the `values` belong to which result; `others` are those of the operator's `columns` that the state has not, by
    their names. `deduplicates`: its state is keys alone.
    """

    node: AccumulateNode | RegroupNode
    keys: tuple[Column, ...]
    values: tuple[Column, ...] = ()
    buffers: tuple[Buffers, ...] = ()
    others: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    deduplicates: bool = False

    def fits(self, stored: StoredState) -> bool:
        if stored.operator in (DEDUPLICATION, WITHIN_WATERMARK):
            return self.deduplicates and self.order(stored) is not None
        if stored.operator != AGGREGATE or (self.deduplicates and self.others):
            return False
        last = _columns(stored.values)[len(stored.values) - len(self.values) :] if self.values else ()
        before = len(stored.values) - len(self.values)
        return last == self.values and before in (0, len(stored.keys)) and self.order(stored) is not None

    def order(self, stored: StoredState) -> list[int] | None:
        """Where the state has our keys: by their names, or one after another where names say nothing. None where they are others."""
        there = list(_columns(stored.keys))
        if len(set(there)) == len(there) and sorted(there) == sorted(self.keys):
            return [there.index(key) for key in self.keys]
        same = [type for _, type in there] == [type for _, type in self.keys]
        return list(range(len(there))) if same and not self.deduplicates else None

    @property
    def remarks(self) -> list[str]:
        """What does not come over to the last bit, and what is told apart by its place alone."""
        if not isinstance(self.node, AccumulateNode):
            return []
        results = self.node.spec.results
        found = [f"{result.text} {said}" for result in results if (said := remark(result, self.node.spec.inputs))]
        kinds = [(result.function, str(result.type)) for result in results]
        alike = [result.text for result, sort in zip(results, kinds, strict=True) if kinds.count(sort) > 1]
        order = f"{', '.join(alike)} are told apart by their order: the query must have them in that of the stream"
        return [*found, order] if alike else found


def layout_of(node: Node) -> Layout | None:
    """None for what Spark has no state of this kind for."""
    if type(node) is AccumulateNode:
        return _of_accumulators(node)
    if type(node) is RegroupNode and kind(node.plan) == "Aggregate":
        return _of_first_rows(node)
    return None


def _of_accumulators(node: AccumulateNode) -> Layout | None:
    keys = _named(items(node.plan.groupingExpressions()))
    calls = [call for e in items(node.plan.aggregateExpressions()) for call in aggregate_expressions(e)]
    if any(result.function == "first" for result in node.spec.results):
        return _of_first_value(node, keys, calls)
    ours = [str(call.canonicalized().toString()) for call in distinct_calls(calls)]
    values: list[Column] = []
    buffers: list[Buffers] = []
    seen: set[str] = set()
    for call in calls:
        text = str(call.canonicalized().toString())
        if text not in seen:
            seen.add(text)
            columns = _named(items(call.aggregateFunction().aggBufferAttributes()))
            buffers.append(Buffers(node.spec.results[ours.index(text)], len(values), len(columns)))
            values += columns
    return Layout(node, keys, tuple(values), tuple(buffers), deduplicates=not values and bool(keys))


def _of_first_value(node: AccumulateNode, keys: tuple[Column, ...], calls: Sequence[Java]) -> Layout | None:
    """dropDuplicates of rows with one column beside the keys."""
    if len(calls) > 1 or not keys:
        return None
    [value] = children(calls[0].aggregateFunction())
    return Layout(node, keys, others=(_named([value])[0][0],), deduplicates=True) if value.nullable() else None


def _of_first_rows(node: RegroupNode) -> Layout | None:
    """dropDuplicates by some of the columns: Spark's state has these, and nothing of the others."""
    calls = [call for e in items(node.plan.aggregateExpressions()) for call in aggregate_expressions(e)]
    firsts = all(kind(call) == "AggregateExpression" and kind(call.aggregateFunction()) == "First" for call in calls)
    keys = _named(items(node.plan.groupingExpressions()))
    if not firsts or not calls or not keys or node.limit is not None:
        return None
    [child] = children(node.plan)
    rest = [one for one in items(child.output()) if str(one.name()) not in {key for key, _ in keys}]
    if not all(one.nullable() for one in rest):
        return None
    others = tuple(name for name, _ in _named(rest))
    columns = tuple(name for name, _ in _named(node.columns))
    return Layout(node, keys, others=others, columns=columns, deduplicates=True)


def _named(attributes: Sequence[Java]) -> tuple[Column, ...]:
    return tuple((str(one.name()) if kind(one) in NAMED else str(one.sql()), _said(data_type(one))) for one in attributes)


def _columns(schema: StructType) -> tuple[Column, ...]:
    return tuple((field.name, _said(field.dataType)) for field in schema.fields)


def _said(type: DataType) -> str:
    return type.simpleString()
