"""`emit="final"`: each closed window is emitted once. What waits for that is kept by an operator of its own, above the aggregate."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items
from nosync.compile.event_time import TimeKey
from nosync.compile.fingerprint import fingerprint
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Hole, Template
from nosync.kernels.final import EARLIEST, LATEST, ORIGIN, TIME_BITS
from nosync.model.columns import DIFF, HASH, ROW
from nosync.model.picture import Description
from nosync.model.watermark import EventClock

if TYPE_CHECKING:
    from nosync.compile.query import Query


@dataclass(eq=False, slots=True, kw_only=True)
class FinalNode(Operator):
    """Rows that wait for their window to close. `fed` are the columns of its feed."""

    clock: EventClock
    payload: pa.Schema
    fed: StructType

    @property
    def time_driven(self) -> bool:
        return True

    @property
    def description(self) -> Description:
        costs, kept = "in proportion to the change and to what closes", "until the watermark has closed their window"
        return Description("results of windows that are open", "they may still change", costs, kept)


def with_close(catalyst: Catalyst, plan: Java, key: TimeKey) -> Java:
    """The aggregate with the key that closes among its columns."""
    if any(a.exprId().equals(key.attribute.exprId()) for a in items(plan.output())):
        return plan
    columns = catalyst.seq([*items(plan.aggregateExpressions()), key.attribute])
    return catalyst.logical.Aggregate(plan.groupingExpressions(), columns, children(plan)[0], plan.hint())


def finalised(query: "Query", plan: Java, early: Template, child: Template, closes: Java, clock: EventClock) -> Template:
    """What the early results of an aggregate come down to once they close: rows that are only ever added."""
    query.finals += 1
    node = query.known(FinalNode, plan, [early])
    if node is None:
        node = _node(query, plan, early, child, closes, clock)
        query.operators.append(node)
    carried = query.carried(sharded=True)
    return Template(Hole(node, early.output + carried), early.output, carried, append_only=True)


def _node(query: "Query", plan: Java, early: Template, child: Template, closes: Java, clock: EventClock) -> FinalNode:
    catalyst, row = query.catalyst, query.catalyst.hash(early.output)
    columns = [catalyst.alias(a, f"c{i}") for i, a in enumerate(early.output)]
    columns += [catalyst.alias(_place(catalyst, row, closes), HASH), catalyst.alias(row, ROW), early.carried[-1]]
    feed = Template(Branch(catalyst.project(columns, catalyst.nowhere), [early.piece]), [], [], append_only=False)
    feed.fingerprint = fingerprint(f"final {query.plans.says(plan)}", [child])
    schema = StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(early.output)])
    fed = StructType([*schema.fields, *(StructField(name, LongType()) for name in (HASH, ROW, DIFF))])
    return FinalNode(
        name=query.operator_name("final"), feed=feed, schema=schema, view=query.view, plan=plan, append_only=True,
        clock=clock, payload=arrow_schema(schema, f'view "{query.view}"'), fed=fed,
    )  # fmt: skip


def _place(catalyst: Catalyst, row: Java, closes: Java) -> Java:
    """Eight bits of the row's hash, then when it closes; what has no end closes last of all."""
    e = catalyst.expressions
    known = e.Coalesce(catalyst.seq([closes, catalyst.long(LATEST)]))
    within = e.Greatest(catalyst.seq([e.Least(catalyst.seq([known, catalyst.long(LATEST)])), catalyst.long(EARLIEST)]))
    time = e.Add(within, catalyst.long(ORIGIN))
    beginning = e.ShiftLeft(row, catalyst.literal(TIME_BITS, catalyst.types.IntegerType))
    return e.BitwiseOr(beginning, time)
