"""Uncorrelated scalar subqueries as joins.

Spark leaves them inside expressions and runs them apart from the plan; it has made joins of all others. Here the node that asks gets its
value from a join with the subquery's one row (`LeftSingle`: null where there is none, an error where there are two), spread as
`keyless_joins` spreads them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.compile.aggregate_calls import aggregate_expressions, rebind
from nosync.compile.rewrites.keyless_joins import with_copies

PRUNING = ("DynamicPruningSubquery", "BloomFilterMightContain")  # filters that only save work: true without them

CALLS = ("AggregateExpression", "PythonUDAF")


def join_scalar_subqueries(catalyst: Catalyst, plan: Java) -> Java:
    """The same query with every scalar subquery of a filter, projection, aggregate or join condition replaced by a column."""
    before = children(plan)
    after = [join_scalar_subqueries(catalyst, child) for child in before]
    if any(one is not other for one, other in zip(before, after, strict=True)):
        plan = catalyst.with_children(plan, after)
    if kind(plan) not in REBUILT or not any(_subqueries(expression) for expression in items(plan.expressions())):
        return plan
    return REBUILT[kind(plan)](_Asking(catalyst), plan)


def _subqueries(expression: Java, beside: tuple[str, ...] = ()) -> bool:
    """Whether there are subqueries in an expression, outside of some kinds of expressions."""
    name = kind(expression)
    if name in beside:
        return False
    return name in ("ScalarSubquery", *PRUNING) or any(_subqueries(child, beside) for child in children(expression))


@dataclass
class _Asking:
    """A node being rebuilt; `answers` are the subqueries it asks and the columns that will hold their values."""

    catalyst: Catalyst
    answers: list[tuple[Java, list[Java]]] = field(default_factory=list)

    def rewritten(self, expression: Java) -> Java:
        name = kind(expression)
        if name in PRUNING:
            return self.catalyst.expressions.Literal.TrueLiteral()
        if name == "ScalarSubquery":
            return self._columns(expression.plan())[0]
        if name == "GetStructField" and kind(expression.child()) == "ScalarSubquery" and _merged(expression.child().plan()):
            return self._columns(expression.child().plan())[int(expression.ordinal())]
        inner = children(expression)
        after = [self.rewritten(child) for child in inner]
        changed = any(one is not other for one, other in zip(inner, after, strict=True))
        return self.catalyst.with_children(expression, after) if changed else expression

    def _columns(self, subquery: Java) -> list[Java]:
        """The columns of a subquery's values; equal subqueries share them. They are null without a row, whatever the subquery says."""
        for known, columns in self.answers:
            if known.sameResult(subquery):
                return columns
        values = _merged(subquery) or items(subquery.output())
        columns = [self.catalyst.attribute("value", value.dataType()) for value in values]
        self.answers.append((subquery, columns))
        return columns

    def answered(self, child: Java) -> Java:
        """The child with the columns of all answers."""
        for subquery, columns in self.answers:
            sides = with_copies(self.catalyst, child, _one_row(self.catalyst, subquery), columns)
            joined = self.catalyst.join(sides[0], sides[1], "LeftSingle", sides[2])
            child = self.catalyst.project([*items(child.output()), *columns], joined)
        return child

    def filter(self, plan: Java) -> Java:
        condition = self.rewritten(plan.condition())
        filtered = self.catalyst.logical.Filter(condition, self.answered(children(plan)[0]))
        return self.catalyst.project(items(plan.output()), filtered)

    def project(self, plan: Java) -> Java:
        columns = [self.rewritten(column) for column in items(plan.projectList())]
        return self.catalyst.project(columns, self.answered(children(plan)[0]))

    def join(self, plan: Java) -> Java:
        condition = self.rewritten(plan.condition().get())
        left, right = children(plan)
        joined = self.catalyst.logical.Join(self.answered(left), right, plan.joinType(), self.catalyst.option(condition), plan.hint())
        return self.catalyst.project(items(plan.output()), joined)

    def aggregate(self, plan: Java) -> Java:
        """Subqueries in arguments and keys are asked below the aggregate, those beside its functions above it."""
        if any(map(_subqueries, items(plan.groupingExpressions()))):
            return join_scalar_subqueries(self.catalyst, self._by_columns(plan))
        if any(_subqueries(e, CALLS) for e in items(plan.aggregateExpressions())):
            return join_scalar_subqueries(self.catalyst, self._above(plan))
        grouping, expressions = (
            [self.rewritten(e) for e in items(found)] for found in (plan.groupingExpressions(), plan.aggregateExpressions())
        )
        seq = self.catalyst.seq
        return self.catalyst.logical.Aggregate(seq(grouping), seq(expressions), self.answered(children(plan)[0]), plan.hint())

    def _by_columns(self, plan: Java) -> Java:
        """The aggregate with its keys computed below it: they are columns then, wherever they are said again."""
        catalyst, seq, [child] = self.catalyst, self.catalyst.seq, children(plan)
        grouping = items(plan.groupingExpressions())
        keys = [catalyst.alias(key, "key") for key in grouping]
        columns = [key.toAttribute() for key in keys]
        results = [_said_by(catalyst, result, grouping, columns) for result in items(plan.aggregateExpressions())]
        below = catalyst.project([*items(child.output()), *keys], child)
        return catalyst.logical.Aggregate(seq(columns), seq(results), below, plan.hint())

    def _above(self, plan: Java) -> Java:
        """The aggregate's functions alone, and a projection above them that says the rest."""
        catalyst, seq = self.catalyst, self.catalyst.seq
        expressions, grouping = items(plan.aggregateExpressions()), items(plan.groupingExpressions())
        calls = [call for expression in expressions for call in aggregate_expressions(expression)]
        keys, results = [catalyst.alias(key, "key") for key in grouping], [catalyst.alias(call, "result") for call in calls]
        below = catalyst.logical.Aggregate(seq(grouping), seq(keys + results), children(plan)[0], plan.hint())
        attributes = [key.toAttribute() for key in keys], [result.toAttribute() for result in results]
        bound = [rebind(catalyst, e, grouping, attributes[0], calls, attributes[1]) for e in expressions]
        named = [catalyst.alias(b.child() if kind(b) == "Alias" else b, e.name(), like=e) for e, b in zip(expressions, bound, strict=True)]
        return catalyst.project(named, below)


REBUILT: dict[str, Callable[[_Asking, Java], Java]] = {
    "Filter": _Asking.filter,
    "Project": _Asking.project,
    "Join": _Asking.join,
    "Aggregate": _Asking.aggregate,
}


def _said_by(catalyst: Catalyst, result: Java, grouping: list[Java], columns: list[Java]) -> Java:
    """A result with the columns in place of the keys, outside of its functions; it keeps its name."""
    inner = result.child() if kind(result) == "Alias" else result
    calls = aggregate_expressions(inner)
    return catalyst.alias(rebind(catalyst, inner, grouping, columns, calls, calls), result.name(), like=result)


def _merged(subquery: Java) -> list[Java]:
    """The values of several subqueries over the same rows, which Spark has merged into one with a struct; names in it may repeat."""
    columns = [column for column in items(subquery.projectList()) if kind(column) == "Alias"] if kind(subquery) == "Project" else []
    merged = len(columns) == 1 and str(columns[0].name()) == "mergedValue" and kind(columns[0].child()) == "CreateNamedStruct"
    return items(columns[0].child().valExprs()) if merged else []


def _one_row(catalyst: Catalyst, subquery: Java) -> Java:
    """The subquery's plan. An `exists` comes as one constant of the first row, if there is any: counting the rows says the same."""
    values = _merged(subquery)
    if values:
        row = catalyst.project([catalyst.alias(value, "value") for value in values], children(subquery)[0])
        return join_scalar_subqueries(catalyst, row)
    below = subquery
    while kind(below) in ("GlobalLimit", "LocalLimit") and str(below.limitExpr().toString()) == "1":
        below = children(below)[0]
    columns = items(below.projectList()) if kind(below) == "Project" else []
    constant = len(columns) == 1 and kind(columns[0]) == "Alias" and bool(columns[0].child().foldable())
    if below is subquery or not constant:
        return join_scalar_subqueries(catalyst, subquery)
    count = catalyst.alias(catalyst.count(), "rows")
    rows = catalyst.logical.Aggregate(catalyst.seq([]), catalyst.seq([count]), children(below)[0], catalyst.none)
    some = catalyst.expressions.GreaterThan(count.toAttribute(), catalyst.zero)
    value = catalyst.alias(catalyst.when(some, columns[0].child()), columns[0].name(), like=columns[0])
    return join_scalar_subqueries(catalyst, catalyst.project([value], rows))
