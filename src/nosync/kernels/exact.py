"""Exact sums: wide numbers as a few int64 columns, free of order, mergeable and invertible.

A number is the sum of digit[i] * 2**(32 * i). Integers and decimals use indices from 0 up, doubles also negative ones. Digits
of many rows are held by index, `{index: one int64 per row}`; an index that is missing means zero in every row.

Promise: nothing is ever rounded. Any order, any split and any later subtraction give the same number, and `normalise` gives
every number one representation only: digits in [-2**31, 2**31), no column of zeros. All other functions accept and may return
digits outside that range, as long as they stay within 2**62; fresh digits are within 2**31, so that any 2**31 rows can be added.
Arrays may be shared between argument and result: never write into one.

Pure. Called by accumulate; `rounding` turns the result into doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nosync.model.errors import Internal

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Digits = dict[int, Ints]

HALF = 1 << 31
MASK = (1 << 32) - 1
SAFE = 1 << 62
BLOCK_ROWS = 1 << 14
TOP_DOUBLE_INDEX = 31  # 2**(32*31) is the last position whose multiples are doubles


def digits_of_integers(values: Ints) -> Digits:
    """Balanced digits of 64-bit integers; small ones are their own single digit, without a copy."""
    if len(values) == 0 or (values.min() >= -HALF and values.max() < HALF):
        return {0: values}
    high = values >> 32
    low = values - (high << 32)
    return normalise({0: low, 1: high})


def digits_of_decimals(array: pa.Decimal128Array) -> Digits:
    """Balanced digits of the unscaled values; null counts as zero."""
    low, high = decimal_words(array)
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        low, high = low * valid, high * valid
    if np.array_equal(high, low >> 63):
        return digits_of_integers(low)
    return normalise({0: low & MASK, 1: (low >> 32) & MASK, 2: high & MASK, 3: high >> 32})


def decimal_words(array: pa.Decimal128Array) -> tuple[Ints, Ints]:
    """The lower and upper 64 bits of each unscaled value, undefined under nulls."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    words = np.frombuffer(buffer, np.int64, count=2 * len(array), offset=16 * array.offset)
    return words[0::2], words[1::2]


def digits_of_doubles(values: Doubles) -> Digits:
    """Every finite double to its last bit. The caller has counted and replaced NaN and infinities.

    Cuts off 32 bits at a time from the top, in floating point: what is cut and what remains are both exact. Costs one round for
    each index that occurs: two or three for amounts and measurements, up to 67 for numbers of all magnitudes.
    """
    return _by_blocks(_cut_doubles, values)


def digits_of_products(x: Doubles, y: Doubles) -> Digits:
    """Exactly x * y for all finite doubles: no rounding, overflow or underflow."""
    return _by_blocks(_cut_squares, x) if y is x else _by_blocks(_cut_products, x, y)


def scale(digits: Digits, weights: Ints) -> Digits:
    """Each row times its weight (|weight| < 2**20 on fresh digits)."""
    if len(weights) and weights[0] in (1, -1) and (weights == weights[0]).all():
        return digits if weights[0] == 1 else negate(digits)
    return {index: digit * weights for index, digit in digits.items()}


def reduce(digits: Digits, starts: npt.NDArray[np.integer[Any]]) -> Digits:
    """Sums over consecutive rows: group g begins at row starts[g] and ends before the next (none is empty)."""
    if not digits:
        return {}
    rows = len(next(iter(digits.values())))
    if len(starts) == rows:
        return digits
    longest = int(np.diff(starts, append=rows).max(initial=0))
    if longest * max(_largest(digit) for digit in digits.values()) >= SAFE:
        digits = normalise(digits)
    return {index: np.add.reduceat(digit, starts) for index, digit in digits.items()}


def add(left: Digits, right: Digits) -> Digits:
    """Row by row sum."""
    total = dict(left)
    for index, digit in right.items():
        total[index] = total[index] + digit if index in total else digit
    return total


def negate(digits: Digits) -> Digits:
    """What takes the number out of a sum again."""
    return {index: -digit for index, digit in digits.items()}


def normalise(digits: Digits) -> Digits:
    """The one representation of each number: balanced digits, no column of zeros. Equal numbers become equal columns."""
    result: Digits = {}
    carry: Ints | None = None
    index, top = min(digits, default=0), max(digits, default=-1)
    while index <= top or carry is not None:
        value = digits.get(index)
        if carry is not None:
            value = carry if value is None else value + carry
        if value is not None:
            value, carry = _balance(value)
            if value.any():
                result[index] = value
        index += 1
    return result


def to_integers(digits: Digits, rows: int) -> tuple[Ints, Bools]:
    """64-bit integers, wrapped around as Java does, and where that happened."""
    if not digits.keys() - {0}:
        return digits.get(0, np.zeros(rows, np.int64)), np.zeros(rows, np.bool_)
    words, overflow = _words(digits, rows, 2)
    return (words[0] | (words[1] << 32)).view(np.int64), overflow


def to_decimal128(digits: Digits, rows: int, precision: int, scale: int) -> tuple[pa.Decimal128Array, Bools]:
    """Decimals with the number as unscaled value; null, and marked, where more than `precision` places are needed."""
    words, overflow = _words(digits, rows, 4)
    pairs = np.empty((rows, 2), np.uint64)
    pairs[:, 0] = words[0] | (words[1] << 32)
    pairs[:, 1] = words[2] | (words[3] << 32)
    overflow |= _needs_more_places(pairs, precision)
    validity = pa.py_buffer(np.packbits(~overflow, bitorder="little")) if overflow.any() else None
    return pa.Array.from_buffers(pa.decimal128(precision, scale), rows, [validity, pa.py_buffer(pairs)]), overflow


def to_objects(digits: Digits, rows: int) -> tuple[npt.NDArray[np.object_], int]:
    """Python integers and `lowest`, the number being integer * 2**(32 * lowest). Exact but slow: for rare finishes."""
    lowest = min(digits, default=0)
    total = np.zeros(rows, dtype=object)
    for index, digit in digits.items():
        total = total + digit.astype(object) * (1 << (32 * (index - lowest)))
    return total, lowest


def _by_blocks(cut: Callable[..., Digits], *values: Doubles) -> Digits:
    """Digits of all rows, made in blocks whose intermediate results stay in the processor's cache."""
    rows = len(values[0])
    if rows <= BLOCK_ROWS:
        return cut(*values)
    digits: Digits = {}
    for start in range(0, rows, BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        for index, digit in cut(*(column[part] for column in values)).items():
            if index not in digits:
                digits[index] = np.zeros(rows, np.int64)
            digits[index][part] = digit
    return digits


def _cut_doubles(values: Doubles) -> Digits:
    digits: Digits = {}
    rest, last = values, TOP_DOUBLE_INDEX + 1
    while (largest := _largest(rest)) != 0:
        last = min(int(np.frexp(largest)[1]) // 32, last - 1)
        cut = _shift(rest, -32 * last)
        cut = np.trunc(cut, out=cut) if last == TOP_DOUBLE_INDEX else np.rint(cut, out=cut)
        digit = cut.astype(np.int64)
        if digit.any():
            digits[last] = digit
            if 32 * last < -1074:
                break
            rest = rest - _shift(cut, 32 * last)
    return normalise(digits) if TOP_DOUBLE_INDEX in digits else digits


def _cut_squares(x: Doubles) -> Digits:
    return _cut_products(x, x)


def _cut_products(x: Doubles, y: Doubles) -> Digits:
    """Product and rounding error, each cut into digits; at extreme magnitudes those of the mantissas, moved to their place."""
    if _is_moderate(x) and (y is x or _is_moderate(y)):
        product, error = _two_product(x, y)
        return add(_cut_doubles(product), _cut_doubles(error))
    (x_part, x_exponent), (y_part, y_exponent) = np.frexp(x), np.frexp(y)
    exponent = x_exponent.astype(np.int64) + y_exponent
    bits = (exponent & 31).astype(np.int32)
    product, error = (np.ldexp(part, bits) for part in _two_product(x_part, y_part))
    index = np.where(product != 0, exponent >> 5, 0)
    digits: Digits = {}
    for position in np.unique(index):
        rows = np.flatnonzero(index == position)
        for shifted, digit in add(_cut_doubles(product[rows]), _cut_doubles(error[rows])).items():
            column = digits.setdefault(int(position) + shifted, np.zeros(len(x), np.int64))
            column[rows] += digit
    return digits


def _largest(values: npt.NDArray[Any]) -> Any:
    """The greatest magnitude, as a Python number (that of -2**63 does not fit int64)."""
    return max(values.max().item(), -values.min().item()) if len(values) else 0


def _shift(values: Doubles, bits: int) -> Doubles:
    """Times 2**bits, in a new array. A tiny number may underflow on its way to being cut to zero."""
    if -1022 <= bits <= 1023:
        return values * 2.0**bits
    return np.asarray(np.ldexp(values, bits))


def _balance(value: Ints) -> tuple[Ints, Ints | None]:
    if len(value) == 0 or (value.min() >= -HALF and value.max() < HALF):
        return value, None
    carry = value + HALF
    carry >>= 32
    return value - (carry << 32), carry


def _is_moderate(values: Doubles) -> bool:
    """Whether products of such numbers, and their rounding errors, stay far from overflow and underflow."""
    magnitudes = np.abs(values)
    smallest = magnitudes.min(initial=np.inf)
    if smallest == 0:
        smallest = magnitudes.min(initial=np.inf, where=magnitudes > 0)
    return bool(smallest > 2.0**-480 and magnitudes.max(initial=0.0) < 2.0**480)


def _two_product(x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
    """The rounded product and its exact error (Dekker's product over Veltkamp's halves)."""
    product = x * y
    x_high, x_low = _halves(x)
    y_high, y_low = (x_high, x_low) if y is x else _halves(y)
    error = x_high * y_high
    error -= product
    error += x_high * y_low
    error += x_low * y_high
    error += x_low * y_low
    return product, error


def _halves(x: Doubles) -> tuple[Doubles, Doubles]:
    high = x * 134217729.0
    high -= high - x
    return high, x - high


def _words(digits: Digits, rows: int, count: int) -> tuple[list[npt.NDArray[np.uint64]], Bools]:
    """The lowest `count` 32-bit words in two's complement, and where more are needed."""
    if min(digits, default=0) < 0:
        raise Internal("a sum with a binary fraction was asked for as an integer")
    words: list[npt.NDArray[np.uint64]] = []
    carry = np.zeros(rows, np.int64)
    top = max(digits, default=0)
    while len(words) < count or len(words) <= top or carry.max(initial=0) > 0 or carry.min(initial=0) < -1:
        value = carry + digits[len(words)] if len(words) in digits else carry
        words.append((value & MASK).view(np.uint64))
        carry = value >> 32
    overflow = (words[count - 1] >> 31).view(np.int64) != (carry & 1)
    for word in words[count:]:
        overflow |= word.view(np.int64) != (carry & MASK)
    return words[:count], overflow


def _needs_more_places(pairs: npt.NDArray[np.uint64], precision: int) -> Bools:
    bound = 10**precision
    low, high = pairs[:, 0], pairs[:, 1]
    negative = high >> 63 == 1
    low = np.where(negative, ~low, low)  # one less than the magnitude
    high = np.where(negative, ~high, high)
    bound_low, bound_high = np.uint64(bound & (2**64 - 1)), np.uint64(bound >> 64)
    below = (high < bound_high) | ((high == bound_high) & (low < bound_low))
    edge = negative & (high == np.uint64((bound - 1) >> 64)) & (low == np.uint64((bound - 1) & (2**64 - 1)))
    return np.asarray(~below | edge)
