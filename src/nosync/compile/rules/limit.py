"""`order by ... limit ... offset ...` as one operator over one group.

Promise: rows that the query's order leaves equal go by their columns, left to right; without an order, all rows do. So a limit picks the
same rows whenever it is asked. Only the rows among which the first ones are reach Spark.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children, items, kind
from nosync.compile.refusal import refuse_node, refuse_subquery
from nosync.compile.regrouping import First, Group, Regrouping, results, total_order
from nosync.graph.operators import GatheredNode
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows after the first `lower` up to the first `upper` (to the end where None), in an order, through projections."""

    nodes: tuple[Java, ...]
    lower: int
    upper: int | None
    order: tuple[Java, ...]

    @property
    def below(self) -> Java:
        return children(self.nodes[-1])[0]


def limited(query: "Query", plan: Java) -> Template:
    """The change of a limit, an offset or both, with the sort below."""
    cut = _cut(query, plan)
    child = query.template(cut.below)
    regrouping = Regrouping(query, "limit", cut.nodes, child, [])
    order = list(cut.order) or total_order(query.catalyst, child.output)
    first = None if cut.upper is None else First.of(query.catalyst, cut.upper, "row_number", cut.order, child.output)
    return regrouping.template(lambda gathered: _evaluation(regrouping, cut, order, gathered), announced=True, first=first)


def _cut(query: "Query", plan: Java) -> Cut:
    [below] = children(plan)
    name = kind(plan)
    if name == "Sort":
        for expression in items(plan.order()):
            refuse_subquery(expression, query.view)
        return Cut((plan,), 0, None, tuple(items(plan.order())))
    inner = _cut(query, below) if _goes_on(below) else Cut((), 0, None, ())
    inner = replace(inner, nodes=(plan, *inner.nodes))
    if name == "GlobalLimit":
        end = inner.lower + _number(query, plan, plan.limitExpr())
        return replace(inner, upper=end if inner.upper is None else min(end, inner.upper))
    if name == "Offset":
        return replace(inner, lower=inner.lower + _number(query, plan, plan.offsetExpr()))
    return inner


def _goes_on(plan: Java) -> bool:
    """Whether a sort or a further limit stands below, through projections."""
    while kind(plan) in ("Project", "LocalLimit"):
        [plan] = children(plan)
    return kind(plan) in ("GlobalLimit", "Offset", "Sort")


def _number(query: "Query", plan: Java, expression: Java) -> int:
    if kind(expression) != "Literal":
        raise refuse_node(plan, query.view)
    return int(expression.value())


def _evaluation(regrouping: Regrouping, cut: Cut, order: list[Java], gathered: GatheredNode) -> Branch:
    """Rows are numbered in order, and those between the bounds stay."""
    catalyst = regrouping.query.catalyst
    expressions = catalyst.expressions
    group, piece = Group.of(catalyst, regrouping.child, [], gathered)
    piece = Branch(group.sorted(cut.order, regrouping.child.output), [piece])
    number = catalyst.alias(catalyst.row_number(group.columns, order), "number")
    piece = Branch(catalyst.window([number], group.columns, order), [piece])
    place, integer = number.toAttribute(), catalyst.types.IntegerType
    condition = expressions.GreaterThan(place, catalyst.literal(cut.lower, integer))
    if cut.upper is not None:
        condition = expressions.And(condition, expressions.LessThanOrEqual(place, catalyst.literal(cut.upper, integer)))
    piece = Branch(group.filter(condition), [piece])
    for node in reversed(cut.nodes):
        if kind(node) == "Project":
            piece = Branch(catalyst.project([*items(node.projectList()), group.ghost], catalyst.nowhere), [piece])
    return Branch(results(catalyst, [], regrouping.output, group.ghost), [piece])
