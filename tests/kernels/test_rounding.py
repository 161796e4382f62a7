"""Rounding against rational arithmetic."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from nosync.kernels import exact
from nosync.kernels.exact import Digits
from nosync.kernels.rounding import divide_round_half_up, to_doubles


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def assert_nearest(digits: Digits, rows: int) -> None:
    integers, lowest = exact.to_objects(digits, rows)
    expected = [nearest(Fraction(value) * Fraction(2) ** (32 * lowest)) for value in integers]
    result = to_doubles(digits, rows)
    assert result.dtype == np.float64
    assert [value.hex() for value in result.tolist()] == [value.hex() for value in expected]


def from_integers(values: list[int], lowest: int) -> Digits:
    """The numbers value * 2**(32 * lowest)."""
    width = max(abs(value).bit_length() for value in values) // 32 + 1
    signs = np.array([-1 if value < 0 else 1 for value in values])
    return {lowest + i: np.array([abs(value) >> 32 * i & (2**32 - 1) for value in values]) * signs for i in range(width)}


@pytest.mark.parametrize("seed", range(40))
def test_random_digits_round_to_the_nearest_double(seed: int) -> None:
    generator = np.random.default_rng(seed)
    lowest, width = int(generator.integers(-70, 34)), int(generator.integers(1, 9))
    digits = {i: generator.integers(-(2**31), 2**31, 300) * (generator.random(300) < 0.6) for i in range(lowest, lowest + width)}
    digits = {i: digit for i, digit in digits.items() if generator.random() < 0.9}
    assert_nearest(digits, 300)


@pytest.mark.parametrize("seed", range(20))
def test_digits_that_are_not_balanced_round_alike(seed: int) -> None:
    generator = np.random.default_rng(seed)
    assert_nearest({i: generator.integers(-(2**62), 2**62, 100) for i in range(-2, int(generator.integers(-1, 3)))}, 100)


@pytest.mark.parametrize("lowest", [-40, -36, -35, -34, -33, -10, 0, 5, 29, 30])
@pytest.mark.parametrize("bits", [1, 20, 33, 53, 54, 55, 62, 63, 64, 65, 85, 97, 118, 129, 160])
def test_ties_go_to_even_and_neighbours_of_ties_do_not(lowest: int, bits: int) -> None:
    values = [0]
    for step in range(max(bits - 54, 0), bits):
        for odd in (0, 1):
            tie = (1 << bits) + (odd << step + 1) + (1 << step)
            values += [tie, tie - 1, tie + 1, -tie, 1 - tie, -1 - tie, (1 << bits) - 1, (1 << bits) - (1 << step)]
    assert_nearest(from_integers(values, lowest), len(values))


def test_every_subnormal_boundary_is_rounded_once() -> None:
    unit = 1 << 32 * 40 - 1074  # of the last bit, in numbers that are multiples of 2**-1280
    values = [count * unit + offset for count in (0, 1, 2, 3, 2**51, 2**52 - 1, 2**52, 2**53 - 1, 2**53) for offset in
              (0, 1, -1, unit // 2, unit // 2 + 1, unit // 2 - 1, unit // 4, 3 * unit // 4)]  # fmt: skip
    assert_nearest(from_integers(values + [-value for value in values], -40), 2 * len(values))


def test_the_edge_of_overflow_is_exact() -> None:
    top = (2**53 - 1) << 971
    half = 1 << 970
    values = [top, top + half - 1, top + half, top + half + 1, top + 2 * half, 1 << 1024, 1 << 2000]
    assert_nearest(from_integers(values + [-value for value in values], 0), 2 * len(values))


@pytest.mark.parametrize("seed", range(10))
def test_doubles_come_back_as_they_were(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 2**64, 500, np.uint64).view(np.float64)
    values = np.where(np.isfinite(values), values, 0.0) + 0.0
    assert to_doubles(exact.digits_of_doubles(values), 500).tobytes() == values.tobytes()


@pytest.mark.parametrize("seed", range(10))
def test_sums_equal_fsum(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(0, 1, 1000) * 10.0 ** generator.integers(-20, 20, 1000)
    sums = exact.reduce(exact.digits_of_doubles(values), np.arange(0, 1000, 50))
    assert to_doubles(sums, 20).tolist() == [math.fsum(values[start : start + 50]) for start in range(0, 1000, 50)]


def test_zero_is_positive_after_cancelling() -> None:
    result = to_doubles(exact.reduce(exact.digits_of_doubles(np.array([-1.5, 1.5])), np.array([0])), 1)
    assert result.tolist() == [0.0] and not np.signbit(result[0])
    assert to_doubles({}, 2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_division_rounds_halves_away_from_zero(seed: int) -> None:
    generator = np.random.default_rng(seed)
    numerators = np.array([int(n) * 10**15 for n in generator.integers(-(2**60), 2**60, 200)] + [5, -5, 15, -15, 0, 25], object)
    denominators = np.array([int(n) for n in generator.integers(1, 2**40, 200)] + [10, 10, 10, 10, 3, -10], object)
    with localcontext(prec=120):
        expected = [
            int((Decimal(n) / Decimal(d)).quantize(Decimal(1), ROUND_HALF_UP)) for n, d in zip(numerators, denominators, strict=True)
        ]
    assert divide_round_half_up(numerators, denominators).tolist() == expected


def test_three_digits_round_once_at_every_magnitude() -> None:
    generator = np.random.default_rng(11)
    values = [int(n) << int(s) for n, s in zip(generator.integers(1, 2**53, 2000), generator.integers(0, 40, 2000), strict=True)]
    values += [(value | 1) << int(s) for value, s in zip(values, generator.integers(1, 4, 2000), strict=True)]
    near = [sign * value + step for value in values for step in (-1, 0, 1) for sign in (1, -1)]
    assert_nearest(from_integers([value for value in near if abs(value) < 2**94], -2), sum(abs(value) < 2**94 for value in near))
