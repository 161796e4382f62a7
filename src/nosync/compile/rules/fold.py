"""A fold as an operator: a Python function of (key, state, rows) that is called for each key that an epoch brings rows for.

In Spark's plan it is a grouped map whose function carries a mark in its name; `FOLDS` says what the mark stands for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType

from nosync.bridge.arrow import arrow_schema, arrow_type
from nosync.bridge.catalyst import Java, children, data_type, items
from nosync.compile.event_time import clock_over
from nosync.compile.fingerprint import fingerprint
from nosync.compile.refusal import check_key
from nosync.compile.wording import FOLD_MARK
from nosync.graph.operators import Operator
from nosync.graph.templates import Hole, Template
from nosync.model.columns import DIFF, HASH
from nosync.model.errors import Refused
from nosync.model.identifiers import TraceName
from nosync.model.picture import Description

if TYPE_CHECKING:
    from nosync.compile.query import Query


@dataclass(frozen=True)
class Folding:
    """What the user said. `order_by` are places of columns; `net`: rows may be removed again, and carry their `_diff`. `timers`: the
    function may ask to be called again; `naive`: at a time without a zone.
    """

    function: Callable[..., Any]
    keys: StructType
    columns: StructType
    state: StructType
    output: StructType
    order_by: tuple[int, ...] = ()
    net: bool = False
    deterministic: bool = True
    timers: bool = False
    naive: bool = False

    @property
    def name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))


FOLDS: dict[str, Folding] = {}
_numbers = count(1)


def marked(folding: Folding) -> str:
    """A name for the function in Spark's plan, by which the fold is found again."""
    name = f"{folding.name}{FOLD_MARK}{next(_numbers)}"
    FOLDS[name] = folding
    return name


@dataclass(eq=False, slots=True, kw_only=True)
class FoldNode(Operator):
    """Its change: the rows that the function returned, always added."""

    folding: Folding
    keys: pa.Schema
    columns: pa.Schema
    state: pa.Schema

    @property
    def time_driven(self) -> bool:
        return self.clock is not None

    @property
    def timers(self) -> TraceName | None:
        """The trace of its timers."""
        return None if self.clock is None else TraceName(f"{self.name}/timers")

    @property
    def fed(self) -> StructType:
        """The columns of its feed."""
        named = [StructField(f"k{i}", field.dataType) for i, field in enumerate(self.folding.keys.fields)]
        return StructType([*named, *_numbered(self.folding.columns).fields, StructField(HASH, LongType()), StructField(DIFF, LongType())])

    @property
    def stepwise(self) -> bool:
        return True

    @property
    def record(self) -> TraceName | None:
        return None if self.folding.deterministic else TraceName(f"{self.name}/emitted")

    @property
    def traces(self) -> tuple[TraceName, ...]:
        return tuple(trace for trace in (self.trace, self.timers, self.record) if trace is not None)

    @property
    def description(self) -> Description:
        keeps = "the state of each key" + (", and what was emitted" if self.record else "")
        costs = "one call for each key that has new rows" + (", or whose time has come" if self.time_driven else "")
        kept = f"until {self.folding.name} returns None in its place"
        return Description(keeps, f"{self.folding.name} decides what to keep", costs, kept)


def folded(query: "Query", plan: Java) -> Template | None:
    """The fold's change; the same fold over the same rows is one operator. None for any other function of groups."""
    folding = FOLDS.get(str(plan.functionExpr().name()))
    if folding is None:
        return None
    child = query.template(children(plan)[0])
    if not child.append_only and not folding.net:
        raise Refused(
            f'view "{query.view}" folds rows that may be removed again with "{folding.name}", which would not know',
            hint="Pass retractions=True to fold: each row then carries its _diff, 1 for added and -1 for removed.",
        )
    clock = clock_over(child)
    if folding.timers and not clock.delays:
        raise Refused(
            f'view "{query.view}": "{folding.name}" sets timers, but there is no event time that could reach them',
            hint="Give a source a watermark: flow.source(..., watermark=(column, delay)).",
        )
    node = query.known(FoldNode, plan, [child])
    if node is None:
        node = _node(query, plan, child, folding)
        node.clock = clock if folding.timers else None
        query.operators.append(node)
    output, carried = items(plan.output()), query.carried(sharded=True)
    return Template(Hole(node, output + carried), output, carried, node.append_only)


def _node(query: "Query", plan: Java, child: Template, folding: Folding) -> FoldNode:
    grouping, what = items(plan.groupingAttributes()), f'view "{query.view}"'
    for key in grouping:
        check_key(data_type(key), str(key.sql()), query.view)
    keys = [query.catalyst.normalised(key) for key in grouping]
    feed = query.feed(child, keys, [("k", keys), ("c", items(plan.functionExpr().children()))], rows=False)
    said = f"{folding.state.simpleString()} {folding.output.simpleString()} {folding.order_by} {folding.net}"
    said += f" {folding.deterministic} {folding.timers}"
    feed.fingerprint = fingerprint(f"{query.plans.says(plan)} {said}", [child])
    return FoldNode(
        name=query.operator_name("fold"), feed=feed, schema=_numbered(folding.output), view=query.view, plan=plan, append_only=True,
        folding=folding, keys=pa.schema([(f"k{i}", arrow_type(data_type(key), what)) for i, key in enumerate(keys)]),
        columns=arrow_schema(_numbered(folding.columns), what),
        state=arrow_schema(_numbered(folding.state), f'the state of "{folding.name}"'),
    )  # fmt: skip


def _numbered(schema: StructType) -> StructType:
    return StructType([StructField(f"c{i}", field.dataType) for i, field in enumerate(schema.fields)])
