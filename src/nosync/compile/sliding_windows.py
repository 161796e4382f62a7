"""Sliding windows over functions that can be added up: each row goes to one pane instead of to every window.

Spark's plan copies every row once for each window (an Expand). Where the copies differ in nothing but the window, and windows are whole
slides long, the first copy is enough: it names the last window that the row is part of, and with it the pane.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from nosync.bridge.arrow import arrow_type
from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind
from nosync.compile.aggregate_calls import Parts
from nosync.compile.event_time import TimeKey, is_time, words_of
from nosync.compile.fingerprint import digest, fingerprint
from nosync.graph.operators import AccumulateNode
from nosync.graph.templates import Branch, Template
from nosync.kernels.panes import PANE, Panes
from nosync.model.columns import HASH
from nosync.model.picture import Description
from nosync.model.watermark import EventClock, Expiry

if TYPE_CHECKING:
    from nosync.compile.query import Query

SOME_TIME = 1_700_000_000_123_456


@dataclass(eq=False, slots=True, kw_only=True)
class PaneNode(AccumulateNode):
    """An aggregate over sliding windows, kept by pane. Its change: each window that closes, once."""

    panes: Panes
    clock: EventClock

    @property
    def time_driven(self) -> bool:
        return True

    @property
    def description(self) -> Description:
        why = f"a window is the sum of its {self.panes.size // self.panes.slide} panes"
        return Description("accumulators by key and pane", why, "in proportion to the change and to the panes of what closes")


@dataclass(eq=False, slots=True, kw_only=True)
class SlidingNode(AccumulateNode):
    """An aggregate over sliding windows that are emitted early. Rows come by pane and are kept by window."""

    panes: Panes
    clock: EventClock


def panes_of(plan: Java, key: TimeKey, catalyst: Catalyst) -> Panes | None:
    """The windows of an aggregate over an Expand, if they can be put together from panes."""
    below = children(plan)[0]
    if kind(below) != "Expand" or key.session:
        return None
    index = next((i for i, a in enumerate(items(below.output())) if a.exprId().equals(key.attribute.exprId())), None)
    copies = [items(row) for row in items(below.projections())]
    if index is None or len(copies) < 2 or not all(_alike(copies[0], copy, index) for copy in copies[1:]):
        return None
    windows = [_evaluated(catalyst, copy[index], below) for copy in copies]
    (start, end), (before, _) = windows[0], windows[1]
    size, slide = end - start, start - before
    expected = [(start - i * slide, end - i * slide) for i in range(len(copies))]
    return Panes(key.index, size, slide) if windows == expected and size == slide * len(copies) else None


def _alike(one: list[Java], other: list[Java], index: int) -> bool:
    return all(i == index or a.semanticEquals(b) for i, (a, b) in enumerate(zip(one, other, strict=True)))


def _evaluated(catalyst: Catalyst, window: Java, expand: Java) -> tuple[int, int]:
    """The window of some moment."""
    values = [SOME_TIME if is_time(data_type(a)) else None for a in items(children(expand)[0].output())]
    row = catalyst.expressions.GenericInternalRow(catalyst.array(values))
    bound = catalyst.expressions.BindReferences.bindReference(window, expand.allAttributes(), False)
    found = bound.eval(row)
    return int(found.getLong(0)), int(found.getLong(1))


def by_pane(query: "Query", plan: Java, below: Template) -> Template:
    """What comes in: each row once, with the last window that it is part of."""
    expand = children(plan)[0]
    output, first = items(expand.output()), items(items(expand.projections())[0])
    columns = [query.catalyst.alias(e, a.name(), like=a) for e, a in zip(first, output, strict=True)]
    rows = below.under(query.catalyst.project([*columns, *below.carried], query.catalyst.nowhere), output)
    rows.fingerprint = rows.rows = digest(f"{below.fingerprint} by pane of {query.plans.says(expand)}")
    return rows


def pane_node(
    query: "Query", plan: Java, child: Template, parts: Parts, keys: list[Java], panes: Panes, clock: EventClock, final: bool
) -> PaneNode | SlidingNode:
    """The operator over what is on time."""
    types = [arrow_type(data_type(key), str(key.sql())) for key in keys]
    columns = [("k", i, data_type(key)) for i, key in enumerate(keys)] + [("r", i, data_type(call)) for i, call in enumerate(parts.found)]
    name = query.operator_name("panes" if final else "aggregate")
    # a window that closes is emitted from the state of the epoch before: panes are needed for one epoch longer
    expiry = Expiry(f"k{panes.index}", EventClock(clock.delays, clock.lag + 1) if final else clock, time=words_of(keys[panes.index]))
    return (PaneNode if final else SlidingNode)(
        name=name, feed=_feed(query, plan, child, parts, keys, panes), view=query.view, plan=plan, append_only=final,
        schema=StructType([StructField(f"{letter}{i}", type) for letter, i, type in columns]),
        spec=parts.accumulation(types), panes=panes, clock=clock, expiries=(expiry,),
    )  # fmt: skip


def _feed(query: "Query", plan: Java, child: Template, parts: Parts, keys: list[Java], panes: Panes) -> Template:
    """Keys, inputs, and a hash whose upper bits are those of the key without the window."""
    catalyst, e = query.catalyst, query.catalyst.expressions
    others = [key for i, key in enumerate(keys) if i != panes.index]
    upper = e.BitwiseAnd(catalyst.hash(others), catalyst.long(-1 - PANE))
    spread_by = e.BitwiseOr(upper, e.BitwiseAnd(catalyst.hash([keys[panes.index]]), catalyst.long(PANE)))
    columns = [catalyst.alias(key, f"k{i}") for i, key in enumerate(keys)]
    columns += [catalyst.alias(value, f"i{i}") for i, value in enumerate(parts.inputs)]
    columns += [catalyst.alias(spread_by, HASH), child.carried[-1]]
    feed = Template(Branch(catalyst.project(columns, catalyst.nowhere), [child.piece]), [], [], child.append_only)
    feed.fingerprint = fingerprint(f"panes {query.plans.says(plan)}", [child])
    return feed
