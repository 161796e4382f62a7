"""Window functions: the partitions that an epoch touches are recomputed by Spark.

Neighbouring windows over the same partitions, and the filters and projections between and above them, are one operator: of
`where row_number() over (...) <= 3` only the rows that pass are kept as results.

Promise: where the query's order leaves rows equal, they go by their columns, left to right, so that row_number, lag or a running
sum give the same answer whenever they are asked. Ranks and RANGE frames still see them as equal. Of a limit inside a correlated subquery
Spark makes a row_number that may have no order at all, which it would refuse to anybody else: that one goes by the columns alone.
"""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.compile.regrouping import First, Group, Regrouping, results, total_order
from nosync.compile.rewrites.numbered_rows import is_row_number
from nosync.graph.operators import GatheredNode
from nosync.graph.templates import Branch, Template
from nosync.kernels.top import By

if TYPE_CHECKING:
    from nosync.compile.query import Query

WINDOWS = ("Window", "WindowGroupLimit")
RANKS: dict[str, By] = {"RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank"}


def windowed(query: "Query", plan: Java) -> Template | None:
    """The change of the windows at the top of a plan and of what stands over them; None where there is no window."""
    nodes = _stack(plan)
    if not nodes:
        return None
    child = query.template(children(nodes[-1])[0])
    keys = [query.key(key) for key in items(nodes[-1].partitionSpec())]
    regrouping = Regrouping(query, "window", nodes, child, keys)
    filtered, first = any(kind(node) == "Filter" for node in nodes), _first(query, nodes[-1], child.output)
    return regrouping.template(lambda gathered: _evaluation(regrouping, gathered), announced=filtered, first=first)


def _first(query: "Query", lowest: Java, columns: list[Java]) -> First | None:
    """Where Spark has found out that ranks up to a limit are wanted, only the first rows of a partition matter."""
    if kind(lowest) != "WindowGroupLimit":
        return None
    by = RANKS[kind(lowest.rankLikeFunction())]
    return First.of(query.catalyst, int(lowest.limit()), by, items(lowest.orderSpec()), columns)


def _stack(plan: Java) -> list[Java]:
    """The nodes from here down to the lowest window over the same partitions, outermost first."""
    nodes: list[Java] = []
    depth, partition = 0, None
    while kind(plan) in (*WINDOWS, "Project", "Filter"):
        nodes.append(plan)
        if kind(plan) in WINDOWS:
            keys = items(plan.partitionSpec())
            if partition is not None and not _same(partition, keys):
                break
            depth, partition = len(nodes), keys
        [plan] = children(plan)
    return nodes[:depth]


def _same(one: list[Java], other: list[Java]) -> bool:
    return len(one) == len(other) and all(a.semanticEquals(b) for a, b in zip(one, other, strict=True))


def _evaluation(regrouping: Regrouping, gathered: GatheredNode) -> Branch:
    """The same nodes over the gathered rows. A ghost is a partition of its own."""
    catalyst, order = regrouping.query.catalyst, None
    group, piece = Group.of(catalyst, regrouping.child, regrouping.keys, gathered)
    for node in reversed(regrouping.nodes):
        if kind(node) in WINDOWS and (order is None or not _same(order, items(node.orderSpec()))):
            order = items(node.orderSpec())
            below = items(children(node)[0].output())
            piece = Branch(group.sorted(order, below), [piece])
        piece = Branch(_over(node, group), [piece])
    return Branch(results(catalyst, group.keys, regrouping.output, group.ghost), [piece])


def _ordered(catalyst: Catalyst, node: Java) -> tuple[Java, Java]:
    """The functions of a window and their order; row numbers without one are given one."""
    functions = items(node.windowExpressions())
    if not node.orderSpec().isEmpty() or not any(map(is_row_number, functions)):
        return node.windowExpressions(), node.orderSpec()
    order = total_order(catalyst, items(children(node)[0].output()))
    number = catalyst.row_number(items(node.partitionSpec()), order)
    given = [catalyst.alias(number, one.name(), like=one) if is_row_number(one) else one for one in functions]
    return catalyst.seq(given), catalyst.seq(order)


def _over(node: Java, group: Group) -> Java:
    catalyst, logical = group.catalyst, group.catalyst.logical
    match kind(node):
        case "Project":
            return catalyst.project([*items(node.projectList()), *group.columns], catalyst.nowhere)
        case "Filter":
            return group.filter(node.condition())
        case "Window":
            functions, order = _ordered(catalyst, node)
            return logical.Window(functions, catalyst.seq(group.columns), order, catalyst.nowhere, node.hint())
    function, limit = node.rankLikeFunction(), node.limit()
    return logical.WindowGroupLimit(catalyst.seq(group.columns), node.orderSpec(), function, limit, catalyst.nowhere)
