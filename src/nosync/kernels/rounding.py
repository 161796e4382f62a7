"""The one rounding of an exact number: to the nearest double, ties to even; and division of decimals, ties away from zero.

Promise: the result depends on the number alone, not on the digits it happened to be written in, and equals what rational
arithmetic would give, from subnormals to overflow. Pure. Called when accumulators become output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nosync.kernels.exact import BLOCK_ROWS, MASK, Digits, Doubles, Ints, negate, normalise

Words = npt.NDArray[np.uint64]
Objects = npt.NDArray[np.object_]


def to_doubles(digits: Digits, rows: int) -> Doubles:
    """The double nearest to each number; infinite beyond the largest, positive zero for zero."""
    digits = normalise(digits)
    if not digits:
        return np.zeros(rows, np.float64)
    result = np.empty(rows, np.float64)
    with np.errstate(over="ignore"):
        for start in range(0, rows, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            block = {index: digit[part] for index, digit in digits.items()}
            result[part] = _nearest(block, len(result[part]))
    return result


def divide_round_half_up(numerators: Objects, denominators: Objects) -> Objects:
    """Quotients of Python integers, halves away from zero: the rounding of Spark's decimals. No denominator is zero."""
    magnitude = (2 * np.abs(numerators) + np.abs(denominators)) // (2 * np.abs(denominators))
    negative = (numerators < 0) != (denominators < 0)
    return np.asarray(np.where(negative, -magnitude, magnitude), dtype=object)


def _nearest(digits: Digits, rows: int) -> Doubles:
    """Few bits are rounded by the processor; otherwise the leading 63 bits with a mark for the rest are enough to do so."""
    lowest, top = min(digits), max(digits)
    if lowest == top:
        return np.ldexp(digits[top].astype(np.float64), 32 * top)
    if top - lowest <= 2 and -28 <= top <= 30 and _is_narrow(digits[top]):
        return _nearest_of_three(digits, top)
    negative = _sign(digits, rows) < 0
    words = _magnitude_words(digits, negative, rows)
    window, exponent = _leading_bits(words, lowest)
    result = np.ldexp(window.view(np.int64).astype(np.float64), exponent)
    _round_subnormals(result, window, exponent)
    return np.where(negative, -result, result)


def _nearest_of_three(digits: Digits, top: int) -> Doubles:
    """Two digits are one integer. If that is exact as a double, adding the third rounds once; if not, only its sign matters."""
    high = digits[top] << 32
    if top - 1 in digits:
        high += digits[top - 1]
    result = high.astype(np.float64)
    if top - 2 in digits:
        low = digits[top - 2]
        result += low * 2.0**-32
        large = np.flatnonzero(np.abs(high) > 1 << 53)
        result[large] = (2 * high[large] + np.sign(low[large])).astype(np.float64) * 0.5
    result *= 2.0 ** (32 * (top - 1))
    return result


def _is_narrow(digit: Ints) -> bool:
    return bool(digit.max(initial=0) < 1 << 30 and digit.min(initial=0) > -(1 << 30))


def _sign(digits: Digits, rows: int) -> Ints:
    """Of balanced digits the topmost that is not zero decides."""
    sign = np.zeros(rows, np.int64)
    for index in sorted(digits):
        digit = digits[index]
        np.copyto(sign, digit, where=digit != 0)
    return sign


def _magnitude_words(digits: Digits, negative: npt.NDArray[np.bool_], rows: int) -> list[Words]:
    """Digits of the absolute values in [0, 2**32), one array per index from the lowest, gaps filled."""
    if negative.any():
        opposite = negate(digits)
        digits = {index: np.where(negative, opposite[index], digit) for index, digit in digits.items()}
    words: list[Words] = []
    carry = np.zeros(rows, np.int64)
    for index in range(min(digits), max(digits) + 1):
        value = digits[index] + carry if index in digits else carry
        words.append((value & MASK).view(np.uint64))
        carry = value >> 32
    return words


def _leading_bits(words: list[Words], lowest: int) -> tuple[Words, npt.NDArray[np.int32]]:
    """The first 63 bits of each number, the last one also set if anything follows, and the exponent of that last bit."""
    rows = len(words[0])
    top = np.zeros(rows, np.int64)
    for position, word in enumerate(words):
        top[word != 0] = position
    first, second, third = (_pick(words, top - back) for back in range(3))
    length = np.frexp(first.astype(np.float64))[1]
    left, right = (32 - length).astype(np.uint64), length.astype(np.uint64)
    window = (((first << np.uint64(32)) | second) << left) | (third >> right)
    sticky = (third & ((np.uint64(1) << right) - np.uint64(1))) != 0
    if len(words) > 3:
        sticky |= _lowest_nonzero(words) < top - 2
    window = (window >> np.uint64(1)) | (window & np.uint64(1)) | sticky
    return window, (32 * (top + lowest) - 63 + length).astype(np.int32)


def _pick(words: list[Words], position: Ints) -> Words:
    """Each row's word at its own position; zero below the first."""
    chosen = np.zeros(len(position), np.uint64)
    for index, word in enumerate(words):
        np.copyto(chosen, word, where=position == index)
    return chosen


def _lowest_nonzero(words: list[Words]) -> Ints:
    lowest = np.full(len(words[0]), len(words), np.int64)
    for position in range(len(words) - 1, -1, -1):
        lowest[words[position] != 0] = position
    return lowest


def _round_subnormals(result: Doubles, window: Words, exponent: npt.NDArray[Any]) -> None:
    """Repairs, in place, results whose last bit lies at 2**-1074: they must be rounded there and only there."""
    rows = np.flatnonzero((exponent < -1022 - 62) & (window != 0))
    if len(rows) == 0:
        return
    bits, drop = window[rows], (-1074 - exponent[rows]).astype(np.int64)
    step = np.minimum(drop, 63).astype(np.uint64)  # 63 bits or more leave nothing but the question of one half
    kept = bits >> step
    rest = bits & ((np.uint64(1) << step) - np.uint64(1))
    half = np.uint64(1) << (step - np.uint64(1))
    up = (rest > half) | ((rest == half) & (kept & np.uint64(1) == 1))
    kept += up & (drop <= 63)
    result[rows] = np.ldexp(kept.astype(np.float64), -1074)
