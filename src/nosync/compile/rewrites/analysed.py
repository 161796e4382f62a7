"""What is rewritten before Spark's optimiser sees a query, also in its subqueries: nodes that are gone after it, or that it refuses."""

from collections.abc import Callable

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.compile.refusal import SUBQUERIES
from nosync.compile.rewrites.ranked_joins import rank_as_of, rank_nearest
from nosync.compile.rewrites.watermarked_duplicates import keep_time

REWRITES: dict[str, Callable[[Catalyst, Java, str], Java]] = {
    "AsOfJoin": rank_as_of,
    "NearestByJoin": rank_nearest,
    "DeduplicateWithinWatermark": keep_time,
}


def prepared(catalyst: Catalyst, plan: Java, view: str) -> Java:
    """The same query, of an analysed plan; the plan itself where there is nothing to do."""
    before = children(plan)
    after = [prepared(catalyst, child, view) for child in before]
    if any(one is not other for one, other in zip(before, after, strict=True)):
        plan = catalyst.with_children(plan, after)
    said = items(plan.expressions())
    meant = [_within(catalyst, expression, view) for expression in said]
    if any(one is not other for one, other in zip(said, meant, strict=True)):
        plan = catalyst.with_expressions(plan, meant)
    rewrite = REWRITES.get(kind(plan))
    return plan if rewrite is None else rewrite(catalyst, plan, view)


def _within(catalyst: Catalyst, expression: Java, view: str) -> Java:
    """The expression with the plans of its subqueries rewritten."""
    before = children(expression)
    after = [_within(catalyst, child, view) for child in before]
    if any(one is not other for one, other in zip(before, after, strict=True)):
        expression = catalyst.with_children(expression, after)
    if kind(expression) not in SUBQUERIES:
        return expression
    asked = expression.plan()
    plan = prepared(catalyst, asked, view)
    return expression if plan is asked else expression.withNewPlan(plan)
