"""`dropDuplicatesWithinWatermark` as an operator: the first row of each key goes on, and those that follow within the watermark's delay do
not. A key is remembered until the watermark has come to the time of that row, and the delay.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from nosync.bridge.arrow import arrow_schema, arrow_type
from nosync.bridge.catalyst import Java, children, data_type, items
from nosync.compile.event_time import TimeKey, on_time
from nosync.compile.fingerprint import fingerprint
from nosync.graph.lateness import OnTime
from nosync.graph.operators import Operator
from nosync.graph.templates import Hole, Template
from nosync.kernels.within_watermark import UNTIL
from nosync.model.errors import Refused
from nosync.model.picture import Description
from nosync.model.watermark import EventClock, Expiry

if TYPE_CHECKING:
    from nosync.compile.query import Query


@dataclass(eq=False, slots=True, kw_only=True)
class WithinNode(Operator):
    """Its change: rows whose key is not remembered. `columns` are theirs, the one with the number `time` says until when it then is."""

    clock: EventClock
    keys: pa.Schema
    columns: pa.Schema
    time: int

    @property
    def delay(self) -> int:
        """How long a key is remembered, in microseconds: the longest delay of the sources that rows come from."""
        return max(delay for _, delay in self.clock.delays)

    @property
    def description(self) -> Description:
        return Description("until when each key is remembered", "another row of the key may come until then")


def first_of_each_key(query: "Query", plan: Java) -> Template:
    """The change of the node; equal ones over equal inputs are one operator."""
    below = query.template(children(plan)[0])
    if not below.append_only:
        raise Refused(
            f'view "{query.view}" calls dropDuplicatesWithinWatermark on rows that may be removed again',
            hint="Use dropDuplicates: it goes by what is there, not by what came first.",
        )
    *keys, time = items(plan.keys())
    place = next(i for i, a in enumerate(below.output) if a.exprId().equals(time.exprId()))
    child = on_time(query, TimeKey(time, place, session=False), below)
    node = query.known(WithinNode, plan, [child])
    if node is None:
        node = _node(query, plan, child, keys, place)
        query.operators.append(node)
    carried = query.carried(sharded=True)
    return Template(Hole(node, child.output + carried), child.output, carried, append_only=True)


def _node(query: "Query", plan: Java, child: Template, keys: list[Java], place: int) -> WithinNode:
    assert isinstance(child.piece, OnTime)
    what, clock, normalised = f'view "{query.view}"', child.piece.clock, [query.key(key) for key in keys]
    feed = query.feed(child, normalised, [("k", normalised), ("c", child.output)], rows=False)
    feed.fingerprint = fingerprint(query.plans.says(plan), [child])
    schema = StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(child.output)])
    name = query.operator_name("first")
    child.piece.reader = name
    return WithinNode(
        name=name, feed=feed, schema=schema, view=query.view, plan=plan, append_only=True, clock=clock, time=place,
        keys=pa.schema([(f"k{i}", arrow_type(data_type(key), what)) for i, key in enumerate(normalised)]),
        columns=arrow_schema(schema, what), expiries=(Expiry(UNTIL, clock, time="the first row of the key, and the delay"),),
    )  # fmt: skip
