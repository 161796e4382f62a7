"""Row numbers that take their order from a sort below.

Of `order by ... limit ...` inside a correlated subquery Spark makes a row_number without an order over rows that it has sorted, and counts
on a sort that leaves equals as they come. Here the number says its order itself, and the columns that it is ordered by come up to it.
"""

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind


def order_row_numbers(catalyst: Catalyst, plan: Java) -> Java:
    """The same query with such numbers ordered. Where nothing is sorted below, any order is right: see the rule of windows."""
    before = children(plan)
    after = [order_row_numbers(catalyst, child) for child in before]
    if any(one is not other for one, other in zip(before, after, strict=True)):
        plan = catalyst.with_children(plan, after)
    if kind(plan) != "Window" or not plan.orderSpec().isEmpty():
        return plan
    functions = items(plan.windowExpressions())
    sort = _sort_below(children(plan)[0])
    if sort is None or not any(map(is_row_number, functions)):
        return plan
    order = items(sort.order())
    number = catalyst.row_number(items(plan.partitionSpec()), order)
    given = [catalyst.alias(number, one.name(), like=one) if is_row_number(one) else one for one in functions]
    rows = _with_columns(catalyst, children(plan)[0], [a for one in order for a in items(one.references().toSeq())])
    window = catalyst.logical.Window(catalyst.seq(given), plan.partitionSpec(), sort.order(), rows, plan.hint())
    return catalyst.project(items(plan.output()), window)


def is_row_number(function: Java) -> bool:
    return kind(function.child()) == "WindowExpression" and kind(function.child().windowFunction()) == "RowNumber"


def _sort_below(plan: Java) -> Java | None:
    while kind(plan) == "Project":
        [plan] = children(plan)
    return plan if kind(plan) == "Sort" else None


def _with_columns(catalyst: Catalyst, plan: Java, columns: list[Java]) -> Java:
    """The projections down to the sort, passing these columns on as well."""
    if kind(plan) != "Project":
        return plan
    below = _with_columns(catalyst, children(plan)[0], columns)
    known = {str(column.exprId().toString()) for column in items(plan.output())}
    more = {str(column.exprId().toString()): column for column in columns}
    return catalyst.project([*items(plan.projectList()), *(column for name, column in more.items() if name not in known)], below)
