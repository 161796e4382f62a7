"""From accumulators to answers: Spark's rules for nulls, what is not finite, overflow and rounding."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.accumulate import Accumulation, collapse, lift
from nosync.kernels.functions import Overflow, Result
from nosync.model.errors import Failed


def answer(function: str, columns: list[list[Any]], types: list[pa.DataType], result: pa.DataType, overflow: Overflow = "raise") -> Any:
    """The function over one group with these rows."""
    spec = Accumulation((), tuple(types), (Result(function, tuple(range(len(columns))), result, overflow, f"{function}(x)"),), whole=True)
    rows = len(columns[0])
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    groups = collapse(spec, lift(spec, np.full(rows, 42, np.uint64), [], arrays, np.ones(rows, np.int64)))
    return spec.finish(groups)[0][0].as_py()


D, L = pa.float64(), pa.int64()


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("sum", [1e300, 1.0, -1e300], 1.0),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [None, None], None),
        ("sum", [math.inf, 1.0], math.inf),
        ("sum", [math.inf, -math.inf], math.nan),
        ("sum", [1.7e308, 1.7e308], math.inf),
        ("avg", [1.0, None, 2.0], 1.5),
        ("var_pop", [5.0], 0.0),
        ("var_samp", [5.0], None),
        ("stddev_samp", [1.0, 3.0], math.sqrt(2)),
        ("var_pop", [1e9 + 1, 1e9 + 2, 1e9 + 3], 2 / 3),
        ("var_pop", [math.inf, 1.0], math.nan),
        ("stddev_pop", [None], None),
        ("min", [0.5, math.nan], 0.5),
        ("max", [0.5, math.nan], math.nan),
    ],
)
def test_over_doubles(function: str, values: list[Any], expected: float | None) -> None:
    found = answer(function, [values], [D], D)
    assert found == expected or (expected is not None and math.isnan(expected) and math.isnan(found))


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], 1.0),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], -1.0),
        ([1.0], [1.0], None),
        ([1.0, 1.0], [1.0, 2.0], None),
        ([1.0, math.nan], [1.0, 2.0], math.nan),
        ([math.nan, math.nan], [2.0, 2.0], math.nan),
    ],
)
def test_corr_is_null_for_one_row_and_for_a_constant(x: list[float], y: list[float], expected: float | None) -> None:
    found = answer("corr", [x, y], [D, D], D)
    assert (found is None) == (expected is None)
    assert expected is None or found == pytest.approx(expected, nan_ok=True)


def test_an_integer_sum_that_overflows_raises_wraps_or_is_null() -> None:
    values = [2**63 - 1, 1]
    with pytest.raises(Failed, match=r"sum\(x\) overflows int64"):
        answer("sum", [values], [L], L, "raise")
    assert answer("sum", [values], [L], L, "wrap") == -(2**63)
    assert answer("sum", [values], [L], L, "null") is None
    assert answer("sum", [[*values, -1]], [L], L, "raise") == 2**63 - 1


@pytest.mark.parametrize(
    ("values", "expected"), [(["0.01", "0.02"], "0.015000"), (["0.01", "0.01", "0.02"], "0.013333"), (["-0.01", "0", "-0.01"], "-0.006667")]
)
def test_a_decimal_average_is_rounded_half_up_away_from_zero(values: list[str], expected: str) -> None:
    assert answer("avg", [list(map(Decimal, values))], [pa.decimal128(9, 2)], pa.decimal128(13, 6)) == Decimal(expected)


def test_a_decimal_sum_that_overflows_is_null_where_asked() -> None:
    most = Decimal("9" * 38)
    type = pa.decimal128(38, 0)
    assert answer("sum", [[most, most]], [type], type, "null") is None
    with pytest.raises(Failed, match="overflows"):
        answer("sum", [[most, most]], [type], type, "raise")


@pytest.mark.parametrize(("values", "all_", "any_"), [([True, None], True, True), ([True, False], False, True), ([None], None, None)])
def test_booleans(values: list[bool | None], all_: bool | None, any_: bool | None) -> None:
    assert answer("min", [values], [pa.bool_()], pa.bool_()) is all_
    assert answer("max", [values], [pa.bool_()], pa.bool_()) is any_


@pytest.mark.parametrize(("function", "expected"), [("and", -8), ("or", -1), ("xor", 7)])
def test_bits_keep_their_type(function: str, expected: int) -> None:
    assert answer(function, [[-1, None, -8]], [pa.int16()], pa.int16()) == expected
    assert answer(function, [[None]], [pa.int16()], pa.int16()) is None
