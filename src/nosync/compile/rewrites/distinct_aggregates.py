"""Several distinct aggregates side by side, in an order that depends on the query alone.

Spark copies every row once for each set of distinct arguments (an Expand), and numbers the copies, the column `gid`. Which
set gets which number, and how columns are ordered, follow from numbers that Spark gives out anew each time. A program that is declared
again must find its state again: so both are sorted by what they say.
"""

from collections.abc import Mapping

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind

NUMBER = "gid"


def sort_distinct_aggregates(catalyst: Catalyst, plan: Java) -> Java:
    """The same query with such copies sorted."""
    before = children(plan)
    after = [sort_distinct_aggregates(catalyst, child) for child in before]
    if any(one is not other for one, other in zip(before, after, strict=True)):
        plan = catalyst.with_children(plan, after)
    if kind(plan) != "Aggregate" or kind(lower := children(plan)[0]) != "Aggregate" or kind(expand := children(lower)[0]) != "Expand":
        return plan
    index = _index_of_number(expand)
    if index is None or any(kind(key) != "AttributeReference" for key in items(lower.groupingExpressions())):
        return plan
    try:
        return _sorted(catalyst, plan, index)
    except LookupError:
        return plan


def _index_of_number(expand: Java) -> int | None:
    found = [index for index, column in enumerate(items(expand.output())) if str(column.name()) == NUMBER]
    rows = [items(row) for row in items(expand.projections())]
    return found[0] if len(found) == 1 and all(kind(row[found[0]]) == "Literal" for row in rows) else None


def _sorted(catalyst: Catalyst, upper: Java, index: int) -> Java:
    lower = children(upper)[0]
    expand = children(lower)[0]
    output, rows = items(expand.output()), [items(row) for row in items(expand.projections())]
    said = [[str(value.sql()) for value in row] for row in rows]
    numbers = [int(row[index].value()) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (numbers[i] != 0, sorted(said[i][:index] + said[i][index + 1 :])))
    regular = 0 in numbers
    renumbered = {numbers[i]: position if regular else position + 1 for position, i in enumerate(order)}
    columns = sorted((i for i in range(len(output)) if i != index), key=lambda column: [said[i][column] for i in order])
    columns.append(index)
    integer = catalyst.types.IntegerType
    copies = [
        catalyst.seq([catalyst.literal(renumbered[numbers[i]], integer) if column == index else rows[i][column] for column in columns])
        for i in order
    ]
    placed = {str(output[column].exprId().toString()): position for position, column in enumerate(columns)}
    keys = sorted(items(lower.groupingExpressions()), key=lambda key: placed[str(key.exprId().toString())])
    logical, seq = catalyst.logical, catalyst.seq
    below = logical.Expand(seq(copies), seq([output[column] for column in columns]), children(expand)[0])
    results = sorted(items(lower.aggregateExpressions()), key=lambda result: _rank(result, placed))
    grouped = logical.Aggregate(seq(keys), seq(results), below, lower.hint())
    results = [_renumbered(catalyst, one, output[index], renumbered) for one in items(upper.aggregateExpressions())]
    return logical.Aggregate(upper.groupingExpressions(), seq(results), grouped, upper.hint())


def _rank(result: Java, placed: Mapping[str, int]) -> tuple[int, str]:
    """Keys as they stand, then the rest by what they say."""
    position = placed.get(str(result.exprId().toString())) if kind(result) == "AttributeReference" else None
    return (len(placed), str(result.sql())) if position is None else (position, "")


def _renumbered(catalyst: Catalyst, expression: Java, number: Java, new: Mapping[int, int]) -> Java:
    """With the comparisons of the number changed. `LookupError` where it is used in another way."""
    below = children(expression)
    if kind(expression) == "EqualTo" and _is(below[0], number) and kind(below[1]) == "Literal":
        return catalyst.expressions.EqualTo(below[0], catalyst.literal(new[int(below[1].value())], catalyst.types.IntegerType))
    if _is(expression, number):
        raise LookupError(NUMBER)
    after = [_renumbered(catalyst, child, number, new) for child in below]
    if all(one is other for one, other in zip(below, after, strict=True)):
        return expression
    return catalyst.with_children(expression, after)


def _is(expression: Java, column: Java) -> bool:
    return kind(expression) == "AttributeReference" and bool(expression.exprId().equals(column.exprId()))
