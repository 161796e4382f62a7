"""Aggregate functions: which families each is computed from, and how its value is finished from them.

Values are rounded once, on output, with Spark's types and Spark's rules for nulls. A new function is a line in `FUNCTIONS`, and a family if
none of those there will do.
"""

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels import exact, order, rounding
from nosync.kernels.families import Family, digits_of
from nosync.kernels.groups import Groups
from nosync.model.errors import Failed

Overflow = Literal["raise", "wrap", "null"]
Types = Sequence[pa.DataType]


@dataclass(frozen=True, slots=True)
class Result:
    """One aggregate function over input columns; `type` is what Spark says it returns."""

    function: str
    inputs: tuple[int, ...]
    type: pa.DataType
    overflow: Overflow = "raise"
    text: str = ""


def _column(groups: Groups, name: str) -> np.ndarray:
    return groups.additive.get(name, np.zeros(len(groups), np.int64))


def _known(result: Result, groups: Groups) -> np.ndarray:
    """Rows whose input is not null."""
    if not result.inputs:
        return groups.n
    known: np.ndarray = groups.n - _column(groups, f"nulls{result.inputs[0]}")
    return known


def _overflow(result: Result, mask: np.ndarray) -> None:
    if mask.any() and result.overflow == "raise":
        raise Failed(f"{result.text or result.function} overflows {result.type}", hint="Widen the type, or use try_sum / try_avg.")


def _sum(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    digits = digits_of(f"sum{result.inputs[0]}", groups.additive)
    empty = _known(result, groups) == 0
    if pa.types.is_floating(result.type):
        return pa.array(_double(result.inputs[0], groups), pa.float64(), mask=empty).cast(result.type)
    if pa.types.is_decimal(result.type):
        values, over = exact.to_decimal128(digits, len(groups), result.type.precision, result.type.scale)
        _overflow(result, over)
        return pc.if_else(pa.array(empty), pa.scalar(None, result.type), values)
    integers, over = exact.to_integers(digits, len(groups))
    _overflow(result, over)
    mask = empty | over if result.overflow == "null" else empty
    return pa.array(integers, pa.int64(), mask=mask)


def _double(column: int, groups: Groups) -> np.ndarray:
    """The exact sum rounded to a double, with the rules of IEEE for what is not finite."""
    total = rounding.to_doubles(digits_of(f"sum{column}", groups.additive), len(groups))
    nan, plus, minus = (_column(groups, f"sum{column}.{name}") for name in ("nan", "inf", "-inf"))
    total = np.where(plus > 0, np.inf, total)
    total = np.where(minus > 0, -np.inf, total)
    return np.where((nan > 0) | ((plus > 0) & (minus > 0)), np.nan, total)


def _avg(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    count = _known(result, groups)
    empty = count == 0
    if pa.types.is_decimal(result.type):
        return _decimal_avg(result, inputs, groups, count)
    total = _double(result.inputs[0], groups)
    return pa.array(total / np.where(empty, 1, count), pa.float64(), mask=empty)


def _decimal_avg(result: Result, inputs: Types, groups: Groups, count: np.ndarray) -> pa.Array:
    totals, _ = exact.to_objects(digits_of(f"sum{result.inputs[0]}", groups.additive), len(groups))
    shift = 10 ** (result.type.scale - inputs[result.inputs[0]].scale)
    counts = np.where(count == 0, 1, count).astype(object)
    quotients = rounding.divide_round_half_up(totals * shift, counts)
    limit = 10**result.type.precision
    over = np.array([abs(q) >= limit for q in quotients], bool)
    _overflow(result, over)
    with decimal.localcontext(decimal.Context(prec=60)):
        values = [
            None if n == 0 or o else decimal.Decimal(q).scaleb(-result.type.scale) for q, n, o in zip(quotients, count, over, strict=True)
        ]
    return pa.array(values, result.type)


def _count(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    return pa.array(_known(result, groups), pa.int64())


def _xor(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    bits = _column(groups, f"xor{result.inputs[0]}")
    return pa.array(bits, pa.int64(), mask=_known(result, groups) == 0).cast(result.type)


def _best(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    if result.function in ("min", "max") and pa.types.is_boolean(result.type):
        return _boolean(result, groups)
    [family] = FUNCTIONS[result.function].needs(result, inputs)
    return groups.best.get(family.name, pa.nulls(len(groups), result.type)).cast(result.type)


def _boolean(result: Result, groups: Groups) -> pa.Array:
    known, true = _known(result, groups), _column(groups, f"true{result.inputs[0]}")
    value = true > 0 if result.function == "max" else true == known
    return pa.array(value, pa.bool_(), mask=known == 0)


def _exact(family: str, groups: Groups) -> tuple[np.ndarray, int]:
    """Integers and a power of 2**32: the sum is their product."""
    return exact.to_objects(digits_of(family, groups.additive), len(groups))


def _scaled_covariance(total: str, product: str, other: str, groups: Groups, n: np.ndarray) -> tuple[np.ndarray, int]:
    """n * sum(xy) - sum(x) * sum(y), exactly."""
    (x, x_exponent), (y, y_exponent), (xy, xy_exponent) = _exact(total, groups), _exact(other, groups), _exact(product, groups)
    exponent = min(x_exponent + y_exponent, xy_exponent)
    return (n * xy * 2 ** (32 * (xy_exponent - exponent))) - (x * y * 2 ** (32 * (x_exponent + y_exponent - exponent))), exponent


def _quotient(numerators: np.ndarray, denominators: np.ndarray, exponent: int) -> np.ndarray:
    """numerator / denominator * 2**(32 * exponent), rounded once."""
    up, down = (2 ** (32 * exponent), 1) if exponent >= 0 else (1, 2 ** (-32 * exponent))
    return np.array([_divide(int(a) * up, int(b) * down) for a, b in zip(numerators, denominators, strict=True)], np.float64)


def _divide(a: int, b: int) -> float:
    try:
        return a / b
    except OverflowError:
        return float("inf") if a > 0 else float("-inf")


def _odd(inputs: Sequence[int], groups: Groups) -> np.ndarray:
    counts = [_column(groups, f"sum{i}.{name}") for i in inputs for name in ("nan", "inf", "-inf")]
    odd: np.ndarray = np.logical_or.reduce([count > 0 for count in counts])
    return odd


def _moment(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    i = result.inputs[0]
    known = _known(result, groups)
    n = known.astype(object)
    spread, exponent = _scaled_covariance(f"sum{i}", f"square{i}", f"sum{i}", groups, n)
    value, mask = _over_rows(spread, exponent, known, sample=result.function.endswith("samp"))
    value = np.where(_odd(result.inputs, groups), np.nan, value)
    return pa.array(np.sqrt(value) if result.function.startswith("stddev") else value, pa.float64(), mask=mask)


def _over_rows(spread: np.ndarray, exponent: int, known: np.ndarray, sample: bool) -> tuple[np.ndarray, np.ndarray]:
    """A spread per row (or per row but one), and where that is null for want of rows."""
    mask = known <= (1 if sample else 0)
    n = np.where(mask, 2, known).astype(object)
    return _quotient(spread, n * (n - 1 if sample else n), exponent), mask


def _pair(result: Result, inputs: Types, groups: Groups) -> pa.Array:
    x, y = result.inputs
    known = _known(result, groups)
    n = known.astype(object)
    together, exponent = _scaled_covariance(f"sum{x}", f"product{x}_{y}", f"sum{y}", groups, n)
    odd = _odd(result.inputs, groups)
    if result.function != "corr":
        value, mask = _over_rows(together, exponent, known, sample=result.function.endswith("samp"))
        return pa.array(np.where(odd, np.nan, value), pa.float64(), mask=mask)
    one = np.ones(len(groups), object)
    covariance = _quotient(together, one, exponent)
    spreads = [_quotient(*_with_exponent(_scaled_covariance(f"sum{i}", f"square{i}", f"sum{i}", groups, n), one)) for i in (x, y)]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(odd, np.nan, covariance / np.sqrt(spreads[0]) / np.sqrt(spreads[1]))
    constant = ~odd & ((spreads[0] == 0) | (spreads[1] == 0))  # Spark divides by zero here, which is null
    return pa.array(value, pa.float64(), mask=(known <= 1) | constant)


def _with_exponent(spread: tuple[np.ndarray, int], one: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    return spread[0], one, spread[1]


def _families(*kinds: str) -> Callable[[Result, Types], list[Family]]:
    """Of each input one of every kind; a product is of both."""

    def needed(result: Result, inputs: Types) -> list[Family]:
        each = [Family(kind, (i,)) for kind in kinds if kind != "product" for i in result.inputs]
        return each + [Family("product", result.inputs)] * ("product" in kinds)

    return needed


def _extreme(kind: str) -> Callable[[Result, Types], list[Family]]:
    """The best so far; of booleans, how many are true, which can also be taken away again."""

    def needed(result: Result, inputs: Types) -> list[Family]:
        boolean = pa.types.is_boolean(inputs[result.inputs[0]])
        return [Family("nulls", result.inputs), Family("true", result.inputs)] if boolean else [Family(kind, result.inputs)]

    return needed


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def _always(type: pa.DataType) -> bool:
    return True


def _never(type: pa.DataType) -> bool:
    return False


def _unless_boolean(type: pa.DataType) -> bool:
    return not pa.types.is_boolean(type)


def _is_ordered_or_boolean(type: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(type)) or order.orderable(type)


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function. `spark` is the name of Spark's class of it.

    `gives`: whether there are accumulators for results of a type. `paired`: its two arguments count only where neither is null. `add_only`:
    whether results of a type hold for input that is only ever added to. `sees_nulls`: a null is a value like any other, so FILTER cannot be
    done by nulling rows out.
    """

    spark: str
    needs: Callable[[Result, Types], list[Family]]
    finish: Callable[[Result, Types, Groups], pa.Array]
    gives: Callable[[pa.DataType], bool] = _always
    paired: bool = False
    add_only: Callable[[pa.DataType], bool] = _never
    sees_nulls: bool = False


FUNCTIONS: dict[str, Function] = {
    "count": Function("Count", _families("nulls"), _count),
    "sum": Function("Sum", _families("nulls", "sum"), _sum, _is_number),
    "avg": Function("Average", _families("nulls", "sum"), _avg, _is_number),
    "min": Function("Min", _extreme("min"), _best, _is_ordered_or_boolean, add_only=_unless_boolean),
    "max": Function("Max", _extreme("max"), _best, _is_ordered_or_boolean, add_only=_unless_boolean),
    "and": Function("BitAndAgg", _families("and"), _best, order.orderable, add_only=_always),
    "or": Function("BitOrAgg", _families("or"), _best, order.orderable, add_only=_always),
    "xor": Function("BitXorAgg", _families("nulls", "xor"), _xor),
    "first": Function("First", _families("min"), _best, order.orderable, add_only=_always, sees_nulls=True),
    "var_pop": Function("VariancePop", _families("nulls", "sum", "square"), _moment),
    "var_samp": Function("VarianceSamp", _families("nulls", "sum", "square"), _moment),
    "stddev_pop": Function("StddevPop", _families("nulls", "sum", "square"), _moment),
    "stddev_samp": Function("StddevSamp", _families("nulls", "sum", "square"), _moment),
    "covar_pop": Function("CovPopulation", _families("nulls", "sum", "product"), _pair, paired=True),
    "covar_samp": Function("CovSample", _families("nulls", "sum", "product"), _pair, paired=True),
    "corr": Function("Corr", _families("nulls", "sum", "square", "product"), _pair, paired=True),
}
