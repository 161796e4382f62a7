"""What cannot be maintained, found before anything runs.

Each refusal names the piece of the query and a way out.
"""

from collections.abc import Iterator

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from nosync.bridge.catalyst import Java, children, items, kind
from nosync.bridge.placeholders import owner
from nosync.model.errors import Refused

BATCHES = "Here it sees only the rows that changed. If what it makes of a row follows from that row alone, say so:"
GROUPS = "Else use groupBy(...).applyInPandas(...), or ns.fold with a state."
FOLD = "Use ns.fold(rows, by, fn, state, output): a state of your own by key, with timers, that survives failures as everything else does."
LATER = {
    "MapInPandas": ("mapInPandas of a function of batches", f"{BATCHES} mapInPandas(ns.row_by_row(fn), ...). {GROUPS}"),
    "MapInArrow": ("mapInArrow of a function of batches", f"{BATCHES} mapInArrow(ns.row_by_row(fn), ...). {GROUPS}"),
    "FlatMapGroupsInPandasWithState": ("applyInPandasWithState", FOLD),
    "TransformWithStateInPySpark": ("transformWithState", FOLD),
    "TransformWithState": ("transformWithState", FOLD),
    "AsOfJoin": ("an asof join inside a subquery", "Make the subquery a view of its own and join it."),
    "UnionLoop": ("a recursive query", "Make what it starts from views, and ask the recursive query of them when reading."),
    "Sample": ("a sample", "It would change with every run; filter on a hash instead: where(pmod(xxhash64(key), 100) < 10)."),
}
MARK_A_SOURCE = 'Give the source a watermark, flow.source(..., watermark=("at", "10 seconds")), and group by window(at, ...).'
SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery")
CLOCKS = ("CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp", "CurrentTime")


def refuse_node(node: Java, view: str) -> Refused:
    """The error for a plan node that nothing here can maintain."""
    what, way_out = LATER.get(kind(node), (f"{node.nodeName()}", "Leave this step out of the view and apply it when reading."))
    return Refused(f'view "{view}" uses {what}, which cannot be maintained yet: {_shorten(node.simpleString(40))}', hint=way_out)


def no_late_rows(view: str, aggregates: int) -> Refused:
    """The error for late rows asked for where it is not clear which those are."""
    if not aggregates:
        return Refused(f'view "{view}" has no window over a watermarked column: nothing is late for it', hint=MARK_A_SOURCE)
    hint = "Make the inner aggregate a view of its own, and ask for the late rows of that."
    return Refused(f'view "{view}" has {aggregates} aggregates over event time, and each has late rows of its own', hint=hint)


def not_final(view: str) -> Refused:
    """The error for final results asked for where nothing ever closes."""
    return Refused(f'view "{view}": emit="final" needs a window over a watermarked column, and there is none', hint=MARK_A_SOURCE)


def check_rewritten(plan: Java, view: str) -> None:
    """Refuses a subquery that is still inside an expression: Spark would run it apart from the plan, over the empty placeholder.

    An order that is dropped may ask whatever it likes.
    """
    for node in _nodes(plan):
        for expression in items(node.expressions()) if kind(node) != "Sort" else []:
            refuse_subquery(expression, view)


def refuse_subquery(expression: Java, view: str) -> None:
    """Refuses a subquery inside one expression."""
    if kind(expression) in SUBQUERIES:
        raise Refused(
            f'view "{view}" uses a subquery in an expression, which cannot be maintained yet: {_shorten(str(expression.sql()))}',
            hint="Make the subquery a view of its own and join it.",
        )
    for child in children(expression):
        refuse_subquery(child, view)


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def check_analyzed(plan: Java, view: str) -> None:
    """Refuses what would answer differently each time it is asked: random numbers, clocks, undeclared side effects."""
    for node in _nodes(plan):
        for expression in items(node.expressions()):
            _check_expression(expression, view)


def check_optimised(plan: Java, view: str) -> None:
    """Refuses chance that Spark's optimiser has brought in where the query says nothing of it."""
    for node in _nodes(plan):
        for expression in items(node.expressions()):
            culprit = _culprit(expression)
            if culprit is not None:
                raise Refused(
                    f'view "{view}" is not deterministic: Spark rewrites it over {culprit.sql()}: {_shorten(node.simpleString(40))}',
                    hint="Make this step a view of its own, outside of subqueries, or write it as a join and row_number() over (...).",
                )


def _culprit(expression: Java) -> Java | None:
    """The innermost expression that gives another answer each time."""
    if expression.deterministic():
        return None
    inner = next((found for child in children(expression) if (found := _culprit(child)) is not None), None)
    return inner if inner is not None or _aggregates(expression) else expression


def _nodes(plan: Java) -> Iterator[Java]:
    yield plan
    for child in children(plan):
        yield from _nodes(child)


def _check_expression(expression: Java, view: str) -> None:
    name = kind(expression)
    if name in CLOCKS or name.startswith("CurrentTimestamp"):
        raise Refused(
            f'view "{view}" asks for the clock: {expression.sql()}',
            hint="An epoch must give the same answer when it is repeated; use a timestamp column of the source.",
        )
    if name == "Measure":
        raise Refused(f'view "{view}" asks for a measure: {expression.sql()}', hint="Write out the aggregate instead.")
    if name in SUBQUERIES:
        check_analyzed(expression.plan(), view)
    inner = children(expression)
    culprit = not expression.deterministic() and all(child.deterministic() for child in inner)
    if culprit and not _aggregates(expression):
        raise Refused(
            f'view "{view}" is not deterministic: {expression.sql()}',
            hint="Every epoch must give the same answer when it is repeated; derive the value from columns, for example with xxhash64.",
        )
    for child in inner:
        _check_expression(child, view)


def _aggregates(expression: Java) -> bool:
    """Aggregate functions like first and collect_list call themselves nondeterministic; here they see rows in canonical order."""
    return ".aggregate." in str(expression.getClass().getName())


def check_own(spark: SparkSession, leaf: Java, view: str) -> None:
    """Refuses the placeholder of another flow: it has no rows here, and never will."""
    flow = owner(spark, leaf)
    if flow is not None and kind(leaf) == "InMemoryRelation":
        hint = "Leave out cache() and persist(): what an epoch reads twice is kept by itself."
        raise Refused(f'view "{view}" reads a cached DataFrame of flow "{flow}", which would stay as it is now', hint=hint)
    if flow is not None:
        raise Refused(
            f'view "{view}" reads a DataFrame of another declaration of flow "{flow}"',
            hint="Use what this flow's own source(...) and view(...) returned; in a notebook, run all cells that declare it again.",
        )


def check_key(type: DataType, text: str, view: str) -> None:
    """Refuses grouping keys that Spark compares by more than their bytes."""
    if collated(type):
        raise Refused(
            f'view "{view}" groups by {text}, a string with a collation',
            hint="Group by lower(...) or by collate(..., 'UTF8_BINARY').",
        )


def collated(type: DataType) -> bool:
    """Whether values are compared by more than their bytes."""
    if isinstance(type, StringType):
        return "collate" in type.simpleString().lower()
    if isinstance(type, ArrayType):
        return collated(type.elementType)
    if isinstance(type, MapType):
        return collated(type.keyType) or collated(type.valueType)
    return isinstance(type, StructType) and any(collated(field.dataType) for field in type.fields)
