"""Joins that give each row of the left its best partners on the right: `asof join` and `nearest ... by`, as windows.

Spark would number the rows of the left at random for `nearest`, and has no plan of simpler nodes for `asof`. Here equal rows of the left
are one row and how often it occurs; it meets all partners that count, the best of them stay, and it is repeated as often as it occurs.
Which of two partners that are equally good comes first is decided as in every window, by their columns.

Read before the optimiser: these nodes are gone after it, or nothing can be done with them any more.
"""

from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind
from nosync.compile.regrouping import orderable
from nosync.model.errors import Refused

BACKWARD = ("GreaterThan", "GreaterThanOrEqual")
SORTED_BY_SPARK = 14  # parts of an asof join of the releases that say what both sides are sorted by


def rank_as_of(catalyst: Catalyst, plan: Java, view: str) -> Java:
    """An `asof join` as a window."""
    condition = plan.asOfCondition()
    if plan.condition().isDefined():
        condition = catalyst.expressions.And(plan.condition().get(), condition)
    return _best(catalyst, plan, condition, _nearness(catalyst, plan), 1, view)


def rank_nearest(catalyst: Catalyst, plan: Java, view: str) -> Java:
    """A `nearest ... by` as a window."""
    ranking = plan.rankingExpression()
    order = catalyst.order(ranking, descending="Similarity" in kind(plan.direction()))
    return _best(catalyst, plan, catalyst.expressions.IsNotNull(ranking), [order], int(plan.numResults()), view)


def _nearness(catalyst: Catalyst, plan: Java) -> list[Java]:
    """What puts the best partner first: what Spark sorts the right side by, or the distance where it says nothing else."""
    columns = items(plan.rightSortExprs()) if plan.productArity() >= SORTED_BY_SPARK else []
    if not columns:
        return [catalyst.order(plan.orderExpression())]
    condition = plan.asOfCondition()
    while kind(condition) == "And":
        condition = condition.left()
    return [catalyst.order(column, descending=kind(condition) in BACKWARD) for column in columns]


def _best(catalyst: Catalyst, plan: Java, condition: Java, order: list[Java], most: int, view: str) -> Java:
    left, right = children(plan)
    columns, seq, logical, types = items(left.output()), catalyst.seq, catalyst.logical, catalyst.types
    _check_comparable(columns, view)
    copies = catalyst.alias(catalyst.count(), "copies")
    rows = logical.Aggregate(seq(columns), seq([*columns, copies]), left, catalyst.none)
    pairs = logical.Join(rows, right, plan.joinType(), catalyst.option(condition), logical.JoinHint.NONE())
    number = catalyst.alias(catalyst.row_number(columns, order), "number")
    numbered = logical.Window(seq([number]), seq(columns), seq(order), pairs, catalyst.none)
    best = catalyst.expressions.LessThanOrEqual(number.toAttribute(), catalyst.literal(most, types.IntegerType))
    marks = catalyst.expressions.ArrayRepeat(catalyst.zero, catalyst.cast(copies.toAttribute(), types.IntegerType))
    exploded = seq([catalyst.attribute("copy", types.LongType, nullable=False)])
    repeated = logical.Generate(
        catalyst.expressions.Explode(marks), seq([]), False, catalyst.none, exploded, logical.Filter(best, numbered)
    )
    return catalyst.project(items(plan.output()), repeated)


def _check_comparable(columns: list[Java], view: str) -> None:
    for column in columns:
        if not orderable(data_type(column)):
            raise Refused(
                f'view "{view}" joins rows with a column "{column.name()}" of type {column.dataType().sql()} to their nearest, and such '
                "values cannot be compared",
                hint="Leave the column out of the left side of this join, and join it to the result by a key.",
            )
