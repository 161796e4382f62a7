"""What all operators share that keep the rows of groups and let Spark recompute the touched ones.

The maker of such an operator says by which keys rows are grouped and how Spark evaluates a group, as a piece of Spark's plan
over the gathered rows. Rows with `_ghost` set stand for nothing but their group: they must come out as well, so that the
group's result is replaced even where no row of it is left.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DataType,
    DateType,
    IntegerType,
    MapType,
    ShortType,
    StructField,
    StructType,
    VariantType,
)

from nosync.bridge.arrow import arrow_schema, arrow_type
from nosync.bridge.catalyst import Catalyst, Java, data_type, items
from nosync.compile.aggregate_calls import why_recomputed
from nosync.compile.fingerprint import fingerprint
from nosync.compile.refusal import collated
from nosync.graph.operators import GatheredNode, RegroupNode
from nosync.graph.templates import Branch, Hole, Piece, Template
from nosync.kernels.top import By, Limit, Order
from nosync.model.columns import GHOST, GROUP, HASH, ROW
from nosync.model.errors import Refused

if TYPE_CHECKING:
    from nosync.compile.query import Query

Evaluation = Callable[[GatheredNode], Branch]
NARROW = (BooleanType, ByteType, ShortType, IntegerType, DateType)  # after these there is room for what the query orders by next


@dataclass(frozen=True, slots=True)
class Regrouping:
    """One such operator: `nodes` of Spark's plan, outermost first, over `child`, by `keys` as Spark groups by them.

    `marked`: results do not have the keys, so rows carry the hash and the bytes of theirs through the evaluation; first of all when their
    group closes, by the key `closing`. `in_order`: results are kept with their columns as the plan has them; else in an order of their own,
    so that it does not matter where a query has them.
    """

    query: "Query"
    what: str
    nodes: Sequence[Java]
    child: Template
    keys: list[Java]
    marked: bool = False
    in_order: bool = False
    closing: int | None = None

    @property
    def plan(self) -> Java:
        return self.nodes[0]

    @property
    def output(self) -> list[Java]:
        """The columns of its results."""
        output = items(self.plan.output())
        return output if self.in_order else [output[i] for i in self.query.plans.arranged(self.plan)]

    def template(self, evaluation: Evaluation, *, empty: Java = None, announced: bool = False, first: "First | None" = None) -> Template:
        """The operator's change; equal ones over equal inputs are one operator."""
        node = self.query.known(RegroupNode, self.plan, [self.child])
        if node is None:
            node = self._node(evaluation, empty, announced, first)
            self.query.operators.append(node)
        carried = self.query.carried(sharded=True)
        return Template(Hole(node, self.output + carried), items(self.plan.output()), carried, append_only=False)

    def _node(self, evaluation: Evaluation, empty: Java, announced: bool, first: "First | None") -> RegroupNode:
        query, name, where = self.query, self.query.operator_name(self.what), f'view "{self.query.view}"'
        rows, schema = _numbered(self.child.output), _numbered(self.output)
        key_types = [(f"k{i}", arrow_type(data_type(key), str(key.sql()))) for i, key in enumerate(self.keys)]
        gathered = GatheredNode(name, _numbered(self.child.output).add(GHOST, "boolean", False))
        known = key_types
        if self.marked:
            gathered.schema.add(HASH, "long", False).add(GROUP, "binary", False)
            known = [("k0", pa.binary())]
        return RegroupNode(
            name=name, feed=self._feed(first), schema=schema, view=query.view, plan=self.plan,
            evaluate=evaluation(gathered), gathered=gathered, columns=self.child.output, empty=empty, announced=announced,
            limit=first.limit if first else None, closing=self.closing, why=why_recomputed(self.plan, self.child.append_only),
            payload=pa.schema(key_types + [(f.name, f.type) for f in arrow_schema(rows, where)]),
            results=pa.schema(known + [(f.name, f.type) for f in arrow_schema(schema, where)]),
        )  # fmt: skip

    def _feed(self, first: "First | None") -> Template:
        columns = [("k", self.keys), ("c", self.child.output), ("o", first.values if first else [])]
        feed = self.query.feed(self.child, self.keys, columns, rows=first is None)
        feed.fingerprint = fingerprint(f"{self._says()} {first and first.limit}", [self.child])
        return feed

    def _says(self) -> str:
        plans = self.query.plans
        if self.in_order:
            return f"{' of '.join(map(plans.says, self.nodes))} gives {plans.gives(self.plan)}"
        return f"{plans.meaning(self.plan).rows} by {plans.marks(self.keys, self.nodes[-1])} gives {sorted(plans.gives(self.plan))}"


@dataclass(frozen=True, slots=True)
class First:
    """A limit that spares Spark all but the first rows of a group; `values` are what the query orders by first."""

    limit: Limit
    values: list[Java]

    @staticmethod
    def of(catalyst: Catalyst, k: int, by: By, order: Sequence[Java], columns: Sequence[Java]) -> "First":
        """Where a value cannot be put in order here, rows are taken for equal from there on: right, but fewer are spared."""
        orders, values = [], []
        for one in [*order, *(total_order(catalyst, columns) if by == "row_number" else [])]:
            value, sort = one.child(), data_type(one.child())
            orders.append(Order(str(one.direction().sql()) == "DESC", str(one.nullOrdering().sql()) == "NULLS FIRST"))
            values.append(value if _handed_over(sort) else catalyst.zero)
            if not isinstance(sort, NARROW):
                break
        return First(Limit(k, by, tuple(orders)), values)


def _handed_over(sort: DataType) -> bool:
    """Whether tasks get values of this type as they are, and their bytes say how they compare."""
    try:
        arrow_type(sort, "")
    except Refused:
        return False
    return not collated(sort)


def results(catalyst: Catalyst, keys: Sequence[Java], output: Sequence[Java], ghost: Java, hash: Java = None) -> Java:
    """The projection under which recomputed rows replace the results before; `hash` is that of the keys where these no longer say it."""
    columns = [(key, f"k{i}") for i, key in enumerate(keys)] + [(a, f"c{i}") for i, a in enumerate(output)]
    columns += [(catalyst.hash(keys) if hash is None else hash, HASH), (catalyst.hash(output), ROW)]
    return catalyst.feed(columns, [ghost])


@dataclass(frozen=True, slots=True)
class Group:
    """Gathered rows on their way through Spark, with the columns that say which group they belong to."""

    catalyst: Catalyst
    keys: list[Java]
    ghost: Java

    @staticmethod
    def of(catalyst: Catalyst, child: Template, keys: Sequence[Java], gathered: GatheredNode) -> tuple["Group", Piece]:
        """Rows placed by group, so that whatever asks for all rows of a group finds them together."""
        ghost = catalyst.attribute(GHOST, catalyst.types.BooleanType, nullable=False)
        named = catalyst.aliases((key, f"k{i}") for i, key in enumerate(keys))
        group = Group(catalyst, [key.toAttribute() for key in named], ghost)
        rows = Branch(catalyst.project([*child.output, *named, ghost], catalyst.nowhere), [Hole(gathered, [*child.output, ghost])])
        return group, Branch(catalyst.placed_by(group.columns), [rows])

    @property
    def columns(self) -> list[Java]:
        return [*self.keys, self.ghost]

    def sorted(self, order: Sequence[Java], output: Sequence[Java]) -> Java:
        """A sort by group, then by the query's order, then by all columns: Spark's own sort would leave equals as they come."""
        return self.catalyst.sort([*self.catalyst.ascending(self.columns), *order, *total_order(self.catalyst, output)])

    def filter(self, condition: Java) -> Java:
        """A filter that lets ghosts through."""
        return self.catalyst.logical.Filter(self.catalyst.expressions.Or(self.ghost, condition), self.catalyst.nowhere)


def total_order(catalyst: Catalyst, columns: Sequence[Java]) -> list[Java]:
    """An order that separates all rows that can be distinguished; what Spark cannot sort goes by its text."""
    values = [a if orderable(data_type(a)) else catalyst.text(a) for a in columns]
    return catalyst.ascending(values or [catalyst.zero])


def orderable(type: DataType) -> bool:
    """Whether Spark can sort by such values."""
    if isinstance(type, StructType):
        return all(orderable(field.dataType) for field in type.fields)
    element = getattr(type, "elementType", None)
    return orderable(element) if element is not None else not isinstance(type, MapType | VariantType | CalendarIntervalType)


def _numbered(columns: Sequence[Java]) -> StructType:
    """The columns under numbers: names may repeat or hold anything."""
    return StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(columns)])
