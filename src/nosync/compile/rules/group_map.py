"""Functions of whole groups, in pandas or Arrow: called again for the groups that an epoch touches.

The two sides of a cogrouped function are kept as one collection, distinguished by a column. The rows of a group reach the function
in the order of their columns, left to right, so that the answer never depends on chance. The plan is built by PySpark itself, over a
placeholder for the gathered rows.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.catalyst import Java, children, data_type, items, kind
from nosync.bridge.frames import analyzed
from nosync.bridge.functions import function_of
from nosync.compile.event_time import TimeKey, clock_over, on_time, time_key
from nosync.compile.regrouping import Regrouping, orderable, results
from nosync.compile.wrapped_functions import MARK_TYPES, MARKS, marked_arrow, marked_pandas
from nosync.graph.lateness import OnTime
from nosync.graph.operators import GatheredNode
from nosync.graph.templates import Branch, Hole, Piece, Template
from nosync.model.columns import GHOST, GROUP, HASH
from nosync.model.errors import Refused
from nosync.model.watermark import Expiry

if TYPE_CHECKING:
    from nosync.compile.query import Query

GROUPED = ("FlatMapGroupsInPandas", "FlatMapGroupsInArrow")
COGROUPED = ("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow")
ITERATING = (215, 216)  # evaluation types of functions that take and return iterators


@dataclass(frozen=True, slots=True)
class Side:
    """One input of the function: the numbers of its key and its columns among the gathered ones, and what the function calls them.

    `number` says which rows are its own, by the last of the gathered columns; all are where it is None.
    """

    keys: list[int]
    columns: list[int]
    names: list[str]
    number: int | None = None


def group_mapped(query: "Query", plan: Java) -> Template:
    """The change of what a function returns."""
    if kind(plan) in GROUPED:
        child, keys = query.template(children(plan)[0]), items(plan.groupingAttributes())
        places = list(range(len(child.output)))  # Spark puts the key before the columns
        sides = [Side(places[: len(keys)], places[len(keys) :], [str(a.name()) for a in child.output[len(keys) :]])]
    else:
        child, keys, sides = _cogrouped(query, plan)
    closing = _closing(plan, keys, child)
    child = child if closing is None else on_time(query, closing, child)
    index = None if closing is None else closing.index
    regrouping = Regrouping(query, "groups", [plan], child, [query.key(key) for key in keys], marked=True, in_order=True, closing=index)
    known = len(query.operators)
    found = regrouping.template(lambda gathered: _evaluation(regrouping, sides, gathered))
    for node in query.operators[known:]:
        if closing is not None and isinstance(child.piece, OnTime):
            child.piece.reader = node.name
            columns = f"k{index}", "k0"  # the key of results begins with when their group closes
            node.expiries = tuple(Expiry(column, child.piece.clock, time=closing.words) for column in columns)
    return found


def _closing(plan: Java, keys: list[Java], child: Template) -> TimeKey | None:
    """The key by which groups close, on both sides where there are two. Of sessions, functions see single rows' windows: those do not."""
    key, last = time_key(keys), time_key(items(children(plan)[-1].output())[: len(keys)])
    if key is None or last is None or key.index != last.index or key.session or last.session:
        return None
    return key if clock_over(child).delays else None


def _cogrouped(query: "Query", plan: Java) -> tuple[Template, list[Java], list[Side]]:
    """The two inputs as one collection: the key, the columns of the left, those of the right, and the side."""
    inputs = [query.template(child) for child in children(plan)]
    lengths = int(plan.productElement(0)), int(plan.productElement(1))
    keys = [child.output[:length] for child, length in zip(inputs, lengths, strict=True)]
    columns = [child.output[length:] for child, length in zip(inputs, lengths, strict=True)]
    if [data_type(key) for key in keys[0]] != [data_type(key) for key in keys[1]]:
        hint = "Cast the key of one side to the type of the other's."
        raise Refused(f'view "{query.view}" cogroups by keys of different types', hint=hint)
    catalyst, branches, named = query.catalyst, [], []
    for side, child in enumerate(inputs):
        values = [catalyst.normalised(key) for key in keys[side]]
        values += [a if side == owner else catalyst.null(a.dataType()) for owner in (0, 1) for a in columns[owner]]
        values.append(catalyst.literal(side, catalyst.types.IntegerType))
        named.append([catalyst.alias(value, f"u{i}") for i, value in enumerate(values)])
        branches.append(Branch(catalyst.project([*named[side], child.carried[-1]], catalyst.nowhere), [child.piece]))
    union = catalyst.logical.Union(catalyst.seq([branch.plan for branch in branches]), False, False)
    output = [alias.toAttribute().withNullability(True) for alias in named[0]]
    both = Template(Branch(union, list(branches)), output, inputs[0].carried[-1:], all(child.append_only for child in inputs))
    both.fingerprint = " and ".join(child.fingerprint for child in inputs)
    own, cut, end = len(keys[0]), len(keys[0]) + len(columns[0]), len(output) - 1
    places = list(range(own, cut)), list(range(cut, end))
    sides = [Side(list(range(own)), places[side], [str(a.name()) for a in columns[side]], side) for side in (0, 1)]
    return both, output[:own], sides


def _evaluation(regrouping: Regrouping, sides: list[Side], gathered: GatheredNode) -> Branch:
    """The same function over the gathered rows, wrapped so that its rows say which group they come from."""
    catalyst, plan = regrouping.query.catalyst, regrouping.plan
    pandas = kind(plan).endswith("Pandas")
    declared = StructType([StructField(str(a.name()), data_type(a)) for a in regrouping.output])
    marked = StructType([*declared.fields, *(StructField(name, sort) for name, sort in zip(MARKS, MARK_TYPES, strict=True))])
    function = (marked_pandas if pandas else marked_arrow)(
        function_of(catalyst, plan.functionExpr()), [side.names for side in sides], int(plan.functionExpr().evalType()) in ITERATING,
        arrow_schema(declared, f'view "{regrouping.query.view}"'),
    )  # fmt: skip
    grouped: Any = _grouped(catalyst.spark.createDataFrame([], gathered.schema), sides[0])
    if len(sides) == 2:
        grouped = grouped.cogroup(_grouped(catalyst.spark.createDataFrame([], gathered.schema), sides[1]))
    called = analyzed((grouped.applyInPandas if pandas else grouped.applyInArrow)(function, marked))
    *output, hash, group, ghost = items(called.output())
    return Branch(results(catalyst, [group], output, catalyst.alias(ghost, GHOST), hash), [_with_hole(called, gathered)])


def _grouped(rows: DataFrame, side: Side) -> GroupedData:
    """One side's rows by key, placed and sorted as the function shall see them."""
    if side.number is not None:
        rows = rows.where(F.col(f"c{len(rows.columns) - 4}") == side.number)  # before the ghost, the hash and the group
    keys = [f"c{i}" for i in side.keys]
    sorts = {field.name: field.dataType for field in rows.schema.fields}
    order = [F.col(name) if orderable(sorts[name]) else F.col(name).cast("string") for name in [*keys, *(f"c{i}" for i in side.columns)]]
    placed = (rows.repartition(*keys) if keys else rows.repartition(1)).sortWithinPartitions(*order, GHOST)
    named = [F.col(key).alias(f"_nosync_{key}") for key in keys]
    named += [F.col(f"c{i}").alias(name) for i, name in zip(side.columns, side.names, strict=True)]
    named += [F.col(name).alias(mark) for name, mark in zip((HASH, GROUP, GHOST), MARKS, strict=True)]
    return placed.select(named).groupBy(*(f"_nosync_{key}" for key in keys))


def _with_hole(plan: Java, gathered: GatheredNode) -> Piece:
    """A plan over the placeholder, with the hole in its place."""
    below = children(plan)
    if not below:
        return Hole(gathered, items(plan.output()))
    return Branch(plan, [_with_hole(child, gathered) for child in below])
