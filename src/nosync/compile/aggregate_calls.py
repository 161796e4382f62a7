"""An Aggregate of Spark's plan, taken apart: grouping keys, inputs and functions for the accumulate kernel.

What the kernel has no exact and invertible accumulator for is left to regroup: `take_apart` then answers None.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.types import DecimalType

from nosync.bridge.arrow import arrow_type
from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind
from nosync.bridge.errors import BridgeError
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import FUNCTIONS, Function, Overflow, Result

KNOWN = {function.spark: name for name, function in FUNCTIONS.items()}  # by the name of Spark's class


@dataclass(slots=True)
class Parts:
    """What the accumulate operator is fed with and computes, and the attributes its results are known by above."""

    grouping: list[Java]
    inputs: list[Java] = field(default_factory=list)
    types: list[pa.DataType] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    found: list[Java] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def accumulation(self, keys: list[pa.DataType]) -> Accumulation:
        return Accumulation(tuple(keys), tuple(self.types), tuple(self.results), whole=not self.grouping)

    def input(self, expression: Java) -> int:
        """The number of an input column; equal expressions share one."""
        text = str(expression.canonicalized().toString())
        if text not in self.known:
            self.known[text] = len(self.inputs)
            self.inputs.append(expression)
            self.types.append(arrow_type(data_type(expression), str(expression.sql())))
        return self.known[text]


def aggregate_expressions(expression: Java) -> list[Java]:
    """The aggregate function calls inside an expression, in order."""
    if kind(expression) in ("AggregateExpression", "PythonUDAF"):
        return [expression]
    return [found for child in children(expression) for found in aggregate_expressions(child)]


def take_apart(catalyst: Catalyst, aggregate: Java, append_only: bool) -> Parts | None:
    """The parts of an aggregate that accumulators can maintain, or None."""
    parts = Parts(items(aggregate.groupingExpressions()))
    calls = distinct_calls([call for e in items(aggregate.aggregateExpressions()) for call in aggregate_expressions(e)])
    if sum(kind(call) == "AggregateExpression" and kind(call.aggregateFunction()) == "First" for call in calls) > 1:
        return None  # several firsts must come from one and the same row
    for call in calls:
        if kind(call) != "AggregateExpression" or call.isDistinct():
            return None
        result = _result(catalyst, parts, call, append_only)
        if result is None:
            return None
        parts.results.append(result)
        parts.found.append(call)
    return parts


def distinct_calls(calls: list[Java]) -> list[Java]:
    """Each call once, in an order that follows from what they say: state does not depend on where a program has its columns."""
    by_meaning = {str(call.canonicalized().toString()): call for call in reversed(calls)}
    return sorted(by_meaning.values(), key=lambda call: (str(call.sql()), str(call.canonicalized().toString())))


def why_recomputed(plan: Java, append_only: bool) -> str:
    """Why a plan is recomputed from the rows of its groups, in words."""
    if kind(plan) != "Aggregate":
        return "a row's result depends on the other rows of its group"
    for call in [call for e in items(plan.aggregateExpressions()) for call in aggregate_expressions(e)]:
        name = kind(call.aggregateFunction()) if kind(call) == "AggregateExpression" else ""
        text = str(call.sql()) if name else str(call.name())
        if not name:
            return f"{text} is a Python function of whole groups"
        if call.isDistinct():
            return f"{text}: only the rows say which values are still there"
        if name not in KNOWN:
            return f"{text} has no accumulator"
        if not append_only and FUNCTIONS[KNOWN[name]].add_only(arrow_type(data_type(call), text)):
            return f"{text} under removals: the next best may be any row of the group"
    return "no accumulator holds all of these functions at once"


def _result(catalyst: Catalyst, parts: Parts, call: Java, append_only: bool) -> Result | None:
    spark, text = call.aggregateFunction(), str(call.sql())
    name, arguments = KNOWN.get(kind(spark)), children(spark)
    condition = call.filter().get() if call.filter().isDefined() else None
    type = arrow_type(data_type(spark), text)
    if name is None or not _can_be_kept(FUNCTIONS[name], type, append_only, condition):
        return None
    if name == "count":
        return Result(name, _counted(catalyst, parts, arguments, condition), type, text=text)
    if FUNCTIONS[name].paired:
        x, y = arguments
        arguments = [catalyst.when(_not_null(catalyst, y), x), catalyst.when(_not_null(catalyst, x), y)]
    else:
        arguments = arguments[:1]
    inputs = tuple(parts.input(value if condition is None else catalyst.when(condition, value)) for value in arguments)
    return Result(name, inputs, type, _overflow(spark) if name in ("sum", "avg") else "raise", text)


def _can_be_kept(function: Function, type: pa.DataType, append_only: bool, condition: Java | None) -> bool:
    """Whether accumulators say what the function says, of the rows that meet a condition if there is one."""
    if function.sees_nulls and condition is not None:
        return False
    return function.gives(type) and (append_only or not function.add_only(type))


def _counted(catalyst: Catalyst, parts: Parts, arguments: list[Java], condition: Java | None) -> tuple[int, ...]:
    """The column whose nulls are not counted; none where every row counts."""
    tests = [_not_null(catalyst, argument) for argument in arguments if argument.nullable()]
    tests += [] if condition is None else [condition]
    if not tests:
        return ()
    if len(tests) == 1 and condition is None:
        return (parts.input(next(argument for argument in arguments if argument.nullable())),)
    both = tests[0]
    for test in tests[1:]:
        both = catalyst.expressions.And(both, test)
    return (parts.input(catalyst.when(both, _true(catalyst))),)


def _true(catalyst: Catalyst) -> Java:
    return catalyst.expressions.Literal.TrueLiteral()


def _not_null(catalyst: Catalyst, expression: Java) -> Java:
    return catalyst.expressions.IsNotNull(expression)


def _overflow(function: Java) -> Overflow:
    """What Spark does when the result does not fit: decided when the query was analysed."""
    modes: dict[str, Overflow] = {"ANSI": "raise", "TRY": "null", "LEGACY": "wrap"}
    mode: Any
    try:
        mode = function.evalContext().evalMode()
    except BridgeError:
        mode = function.evalMode()
    overflow = modes[str(mode.toString())]
    return "null" if overflow == "wrap" and isinstance(data_type(function), DecimalType) else overflow


def _same(key: Java, expression: Java) -> bool:
    """Whether an expression says a key; of columns that is to be seen without asking."""
    if key is expression:
        return True
    if "AttributeReference" in (kind(key), kind(expression)):
        return kind(key) == kind(expression) and bool(key.exprId().equals(expression.exprId()))
    return bool(key.semanticEquals(expression))


def rebind(catalyst: Catalyst, expression: Java, grouping: list[Java], keys: list[Java], found: list[Java], results: list[Java]) -> Java:
    """The expression with each function call and grouping key replaced by the column that now holds it."""
    if kind(expression) in ("AggregateExpression", "PythonUDAF"):
        return results[next(i for i, call in enumerate(found) if call is expression or call.semanticEquals(expression))]
    for key, column in zip(grouping, keys, strict=True):
        if _same(key, expression):
            return column
    inner = children(expression)
    if not inner:
        return expression
    return catalyst.with_children(expression, [rebind(catalyst, child, grouping, keys, found, results) for child in inner])
