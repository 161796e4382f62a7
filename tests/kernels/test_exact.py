"""Exact sums against Python's integers and fractions."""

from __future__ import annotations

import decimal
import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels import exact
from nosync.kernels.exact import Digits
from nosync.model.errors import Internal

EXTREMES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308,
            1e300, -1e300, 2.0**31, 2.0**32, 2.0**31 - 0.5, -(2.0**31), 2.0**1023, 2.0**-1022, 2.0**-1056, 2.0**-1057,
            3 * 2.0**-1074, 0.1]  # fmt: skip
INTEGERS = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**63 - 1, -(2**63), 2**62, 2**63 - 2**31]


def any_doubles(seed: int, count: int = 500) -> np.ndarray:
    """Doubles of all magnitudes: random bit patterns with what is not finite set to zero."""
    values = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64).view(np.float64)
    return np.where(np.isfinite(values), values, 0.0)


def prices(seed: int, count: int = 500) -> np.ndarray:
    return np.round(np.random.default_rng(seed).lognormal(3, 2, count), 2)


def numbers(digits: Digits, rows: int) -> list[Fraction]:
    integers, lowest = exact.to_objects(digits, rows)
    return [Fraction(value) * Fraction(2) ** (32 * lowest) for value in integers]


def assert_fresh(digits: Digits) -> None:
    for digit in digits.values():
        assert digit.dtype == np.int64 and np.abs(digit).max() <= 2**31 and digit.any()


def assert_normal(digits: Digits) -> None:
    for digit in digits.values():
        assert digit.min() >= -(2**31) and digit.max() < 2**31 and digit.any()


def test_integers_are_kept_exactly() -> None:
    values = np.concatenate([np.array(INTEGERS), np.random.default_rng(1).integers(-(2**63), 2**63, 1000)])
    digits = exact.digits_of_integers(values)
    assert_normal(digits)
    assert numbers(digits, len(values)) == values.tolist()


def test_small_integers_are_one_digit() -> None:
    assert list(exact.digits_of_integers(np.array([2**31 - 1, -(2**31)]))) == [0]
    assert exact.digits_of_integers(np.array([], np.int64))[0].size == 0


@pytest.mark.parametrize("largest", [10**9, 10**18, 10**38])
def test_decimals_are_kept_exactly_and_null_is_zero(largest: int) -> None:
    generator = np.random.default_rng(largest % 1000)
    with decimal.localcontext(prec=50):
        integers = [int(generator.random() * 2**60) * largest // 2**60 * int(generator.choice([1, -1])) for _ in range(300)]
        integers += [largest - 1, 1 - largest, 0, -1]
        values = [None if generator.random() < 0.2 else decimal.Decimal(value).scaleb(-2) for value in integers]
        array = pa.array([None, *values], pa.decimal128(38, 2)).slice(1)
        digits = exact.digits_of_decimals(array)
        assert numbers(digits, len(values)) == [0 if value is None else int(value.scaleb(2)) for value in values]
    assert_normal(digits)


@pytest.mark.parametrize("seed", range(10))
def test_doubles_are_kept_to_the_last_bit(seed: int) -> None:
    for values in (any_doubles(seed), prices(seed), np.array(EXTREMES), np.array([0.5]), np.zeros(3)):
        digits = exact.digits_of_doubles(values)
        assert_fresh(digits)
        assert numbers(digits, len(values)) == [Fraction(value) for value in values.tolist()]


@pytest.mark.parametrize("value", EXTREMES)
def test_each_extreme_double_alone_is_kept(value: float) -> None:
    digits = exact.digits_of_doubles(np.array([value]))
    assert_fresh(digits)
    assert numbers(digits, 1) == [Fraction(value)]


def test_prices_take_at_most_three_digits() -> None:
    assert len(exact.digits_of_doubles(prices(0, 10000))) <= 3
    assert list(exact.digits_of_doubles(np.arange(1000.0))) == [0]


@pytest.mark.parametrize("seed", range(5))
def test_products_are_exact_for_all_doubles(seed: int) -> None:
    pairs = np.array(list(itertools.product(EXTREMES, EXTREMES)))
    cases = [(any_doubles(seed), any_doubles(seed + 100)), (prices(seed), prices(seed + 1)), (pairs[:, 0].copy(), pairs[:, 1].copy())]
    for x, y in cases:
        digits = exact.digits_of_products(x, y)
        assert numbers(digits, len(x)) == [Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_squares_are_exact_and_narrow() -> None:
    x = prices(3)
    digits = exact.digits_of_products(x, x)
    assert numbers(digits, len(x)) == [Fraction(value) ** 2 for value in x.tolist()]
    assert len(digits) <= 5


@pytest.mark.parametrize("seed", range(20))
def test_weighted_group_sums_equal_fractions(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = any_doubles(seed) if seed % 2 else prices(seed)
    weights = generator.integers(-(2**20) + 1, 2**20, len(values))
    starts = np.unique(np.concatenate([[0], generator.integers(0, len(values), 40)]))
    sums = exact.normalise(exact.reduce(exact.scale(exact.digits_of_doubles(values), weights), starts))
    assert_normal(sums)
    products = [Fraction(value) * weight for value, weight in zip(values.tolist(), weights.tolist(), strict=True)]
    ends = [*starts[1:].tolist(), len(values)]
    assert numbers(sums, len(starts)) == [sum(products[a:b], Fraction(0)) for a, b in zip(starts.tolist(), ends, strict=True)]


def test_a_large_number_between_does_not_swallow_a_small_one() -> None:
    sums = exact.normalise(exact.reduce(exact.digits_of_doubles(np.array([1e300, 1.0, -1e300])), np.array([0])))
    assert list(sums) == [0] and sums[0].tolist() == [1]


def test_heavy_weights_in_long_groups_do_not_overflow() -> None:
    values = np.full(100_000, -(2**31))
    digits = exact.scale({0: values}, np.full(100_000, 2**20 - 1))
    assert numbers(exact.reduce(digits, np.array([0])), 1) == [-(2**31) * (2**20 - 1) * 100_000]


def test_digits_just_inside_the_limit_are_carried() -> None:
    digits = {0: np.array([2**62, -(2**62), -(2**63), 2**31]), 2: np.array([2**62, -(2**62), 0, 0])}
    normal = exact.normalise(digits)
    assert_normal(normal)
    assert numbers(normal, 4) == numbers(digits, 4)


@pytest.mark.parametrize("seed", range(10))
def test_any_order_and_any_split_give_the_same_digits(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = np.concatenate([any_doubles(seed, 200), prices(seed)])
    whole = exact.normalise(exact.reduce(exact.digits_of_doubles(values), np.array([0])))
    shuffled = generator.permutation(values)
    total: Digits = {}
    for part in np.array_split(shuffled, 7):
        total = exact.normalise(exact.add(total, exact.reduce(exact.digits_of_doubles(part), np.array([0]))))
    assert {i: d.tolist() for i, d in whole.items()} == {i: d.tolist() for i, d in total.items()}


def test_what_was_added_can_be_taken_out_again() -> None:
    digits = exact.digits_of_doubles(any_doubles(5))
    assert exact.normalise(exact.add(digits, exact.negate(digits))) == {}
    assert exact.scale(digits, np.ones(500, np.int64)) is digits
    opposite = exact.scale(digits, np.full(500, -1))
    assert exact.normalise(exact.add(digits, opposite)) == {}


def test_nothing_sums_to_nothing() -> None:
    assert exact.reduce({}, np.array([0])) == {}
    assert exact.normalise({}) == {}
    assert exact.to_integers({}, 2)[0].tolist() == [0, 0]
    assert exact.reduce({0: np.array([], np.int64)}, np.array([], np.int64))[0].size == 0


def test_integers_come_back_and_wrap_like_java() -> None:
    wanted = [*INTEGERS, 2**63, -(2**63) - 1, 2**64, 3 * 2**70 + 5, -(2**100) + 3, 2**63 - 1 - 2**64]
    digits = exact.normalise(digits_of_python(wanted))
    values, overflow = exact.to_integers(digits, len(wanted))
    assert overflow.tolist() == [not -(2**63) <= value < 2**63 for value in wanted]
    assert values.tolist() == [(value + 2**63) % 2**64 - 2**63 for value in wanted]


def test_a_fraction_is_not_an_integer() -> None:
    with pytest.raises(Internal):
        exact.to_integers({-1: np.array([1])}, 1)


@pytest.mark.parametrize("precision", [1, 9, 18, 19, 20, 37, 38])
def test_decimals_come_back_or_are_null(precision: int) -> None:
    bound = 10**precision
    near = [bound - 1, bound, bound + 1, 1 - bound, -bound, -bound - 1]
    wanted = [0, 1, -1, *near, 2**64, -(2**64), 2**127, -(2**127), 2**128, 2**128 + 1, 2**200]
    array, overflow = exact.to_decimal128(digits_of_python(wanted), len(wanted), precision, 0)
    assert overflow.tolist() == [abs(value) >= bound for value in wanted]
    assert array.to_pylist() == [decimal.Decimal(value) if abs(value) < bound else None for value in wanted]
    array.validate(full=True)


def digits_of_python(values: list[int]) -> Digits:
    """Digits that are not normal: magnitudes in base 2**32, with the sign on each."""
    signs = np.array([-1 if value < 0 else 1 for value in values])
    return {i: np.array([abs(value) >> 32 * i & (2**32 - 1) for value in values]) * signs for i in range(8)}


def test_many_rows_give_the_digits_of_each_part() -> None:
    values = np.concatenate([np.zeros(20_000), any_doubles(1, 3000), prices(1, 20_000)])
    for make in (exact.digits_of_doubles, lambda part: exact.digits_of_products(part, part)):
        whole = exact.normalise(make(values))
        parts = [exact.normalise(make(part)) for part in np.array_split(values, 10)]
        for index in range(-80, 80):
            expected = np.concatenate([part.get(index, np.zeros(4300, np.int64)) for part in parts])
            assert np.array_equal(whole.get(index, np.zeros(43_000, np.int64)), expected)


@pytest.mark.parametrize("exponent", [-1060, -1000, -600, -490, -470, 470, 490, 600, 1000])
def test_products_of_numbers_all_tiny_or_all_huge(exponent: int) -> None:
    generator = np.random.default_rng(exponent + 2000)
    x, y = (np.ldexp(generator.normal(0, 1, 200), exponent) for _ in range(2))
    digits = exact.digits_of_products(x, y)
    assert numbers(digits, 200) == [Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
