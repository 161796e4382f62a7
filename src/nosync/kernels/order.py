"""Spark's order of values: codes that sort like the values, and the least or greatest of each group.

Promise: NaN is one value above all numbers, false is below true, text and binary go by unsigned bytes, null is outside the
order. `best` also fixes what Spark leaves open: among zeros -0.0 is below 0.0, so that the result never depends on the order of
the rows. Pure. Called by accumulate and retain for min, max and their kin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels.exact import decimal_words
from nosync.model.errors import Internal
from nosync.state.canonical import is_bytes

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
SAMPLE_ROWS = 1000
TEXT_WORDS = 4  # words of eight bytes compared before the remaining candidates are ranked


def orderable(kind: pa.DataType) -> bool:
    """Whether values of this type have codes; struct, list and map have not."""
    return _is_direct(kind) or is_bytes(kind) or bool(pa.types.is_decimal128(kind))


def codes(array: pa.Array) -> Ints:
    """Integers that compare like the values, within this call; across calls too for numbers of up to 64 bits and times.

    Null gets some code.
    """
    kind = array.type
    if _is_direct(kind):
        return _encode(array, one_zero=True)
    if pa.types.is_decimal128(kind):
        low, high = decimal_words(array)
        if kind.precision <= 18 or np.array_equal(high, low >> 63):
            return np.ascontiguousarray(low)
    elif is_bytes(kind):
        array = array.dictionary_encode() if len(array) else array
    else:
        raise Internal(f"values of type {kind} have no order here", hint="Ask `orderable` first.")
    return _ranks(array)


def ordered_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], int]:
    """Unsigned words that never contradict the order of the values, across calls too, and how many of their upper bits count.

    Fewer than 64 hold the value whole. With 64, different values may have the same word: text has its first eight bytes, a wide
    decimal the double next to it, what has no order here 0. Null gets some word.
    """
    kind, width = array.type, 64
    if _is_direct(kind):
        words = _encode(array, one_zero=True)
        if not pa.types.is_floating(kind) and kind.bit_width < 64:
            width = max(8, kind.bit_width)
            words = words << (64 - width)
    elif pa.types.is_decimal128(kind):
        low, high = decimal_words(array)
        near = high.astype(np.float64) * 2.0**64 + low.view(np.uint64).astype(np.float64)
        words = low if kind.precision <= 18 else _flip(near.view(np.int64))
    elif is_bytes(kind):
        data, begin, length = _byte_ranges(array)
        words = _text_word(data, begin, length)
    else:
        return np.zeros(len(array), np.uint64), width
    return np.asarray(np.ascontiguousarray(words).view(np.uint64) ^ np.uint64(1 << 63)), width


def best(array: pa.Array, starts: npt.NDArray[np.integer[Any]], largest: bool) -> pa.Array:
    """The greatest or least value of each group, null where all are null. Group g begins at row starts[g]; none is empty."""
    if not orderable(array.type):
        raise Internal(f"values of type {array.type} have no order here", hint="Ask `orderable` first.")
    if len(starts) == 0:
        return array.slice(0, 0)
    if _is_direct(array.type):
        found, some = _extreme(_encode(array, one_zero=False), _valid(array), starts, largest)
        return _decode(found, some, array.type)
    if is_bytes(array.type) and _is_repetitive(array):
        return _best_of_few(array.dictionary_encode(), starts, largest)
    rows, some = _best_rows(array, np.asarray(starts, np.int64), largest)
    return array.take(pa.array(rows, mask=~some))


def _is_repetitive(array: pa.Array) -> bool:
    sample = array.slice(len(array) // 2, SAMPLE_ROWS)
    return len(sample) == SAMPLE_ROWS and pc.count_distinct(sample).as_py() < SAMPLE_ROWS // 2


def _best_of_few(array: pa.DictionaryArray, starts: npt.NDArray[np.integer[Any]], largest: bool) -> pa.Array:
    """Few different texts are sorted once; then the groups compare small integers."""
    found, some = _extreme(_ranks(array), _valid(array), starts, largest)
    by_rank = array.dictionary.take(pc.sort_indices(array.dictionary))
    if some is None:
        return by_rank.take(pa.array(found - 1))
    return by_rank.take(pa.array(np.where(some, found - 1, 0), mask=~some))


def _best_rows(array: pa.Array, starts: Ints, largest: bool) -> tuple[Ints, Bools]:
    """A row with the best value of each group, and which groups have one.

    Values are compared word by word; after each word only rows that are still equal to the best of their group go on.
    """
    rows = np.arange(len(array)) if not array.null_count else np.flatnonzero(_valid(array))
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(array)))[rows]
    for word in _words(array, rows):
        first = _first_of_runs(group)
        if len(first) == len(group):
            break
        code = word(rows)
        extreme = (np.maximum if largest else np.minimum).reduceat(code, first)
        alike = code == np.repeat(extreme, np.diff(first, append=len(group)))
        rows, group = rows[alike], group[alike]
    first = _first_of_runs(group)
    result, some = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.bool_)
    result[group[first]], some[group[first]] = rows[first], True
    return result, some


def _words(array: pa.Array, rows: Ints) -> Iterator[Any]:
    """Functions from rows to codes, from the most to the least significant part of the value."""
    if pa.types.is_decimal128(array.type):
        low, high = decimal_words(array)
        yield lambda rows: high[rows]
        yield lambda rows: low[rows] ^ LEAST
        return
    data, begin, length = _byte_ranges(array)
    depth = -(-int(length[rows].max(initial=0)) // 8)
    for step in range(min(depth, TEXT_WORDS)):
        yield lambda rows, step=step: _text_word(data, begin[rows] + 8 * step, length[rows] - 8 * step)
    if depth > TEXT_WORDS:
        yield lambda rows: _ranks(array.take(pa.array(rows)))
    else:
        yield lambda rows: length[rows]  # equal up to zero bytes: the shorter is less


def _text_word(data: npt.NDArray[np.uint8], begin: Ints, left: Ints) -> Ints:
    """The next eight bytes as a code, zeros after the end. `data` has eight bytes to spare at its end."""
    view: npt.NDArray[np.uint64] = np.ndarray((len(data) - 7,), ">u8", buffer=data, strides=(1,))
    word = view[np.minimum(begin, len(data) - 8)].astype(np.uint64)
    missing = np.clip(8 - left, 0, 8)
    word = np.where(missing == 8, np.uint64(0), word & (np.uint64(GREATEST * 2 + 1) << (missing * 8 % 64).astype(np.uint64)))
    return word.view(np.int64) ^ LEAST


def _extreme(code: Ints, valid: Bools | None, starts: Any, largest: bool) -> tuple[Ints, Bools | None]:
    fold = np.maximum if largest else np.minimum
    if valid is None or valid.all():
        return fold.reduceat(code, starts), None
    code = np.where(valid, code, LEAST if largest else GREATEST)
    return fold.reduceat(code, starts), np.logical_or.reduceat(valid, starts)


def _encode(array: pa.Array, one_zero: bool) -> Ints:
    """Codes from which `_decode` gets the value back (zeros excepted if they shall be one)."""
    kind = array.type
    if pa.types.is_floating(kind):
        numbers = _buffer(array.cast(pa.float64()), np.float64).copy()
        numbers[np.isnan(numbers)] = np.nan
        if one_zero:
            numbers[numbers == 0] = 0.0
        return _flip(numbers.view(np.int64))
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    width = array.type.bit_width // 8
    return _buffer(array, np.dtype(f"<i{width}")).astype(np.int64, copy=False)


def _decode(code: Ints, some: Bools | None, kind: pa.DataType) -> pa.Array:
    mask = None if some is None else ~some
    if pa.types.is_floating(kind):
        return pa.array(_flip(code).view(np.float64), mask=mask, from_pandas=False).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(code == 1, mask=mask)
    narrow = code.astype(f"<i{kind.bit_width // 8}")
    return pa.array(narrow, mask=mask).view(kind)


def _flip(bits: Ints) -> Ints:
    """Bits of doubles to integers in their order, and back: negative ones are turned around."""
    return bits ^ ((bits >> 63) & GREATEST)


def _ranks(array: pa.Array) -> Ints:
    if pa.types.is_dictionary(array.type):
        indices = array.indices.fill_null(0).to_numpy()
        return _ranks(array.dictionary)[indices] if len(array.dictionary) else np.zeros(len(array), np.int64)
    return np.asarray(pc.rank(array, tiebreaker="dense").to_numpy().astype(np.int64))


def _first_of_runs(group: Ints) -> Ints:
    return np.flatnonzero(np.diff(group, prepend=-1))


def _valid(array: pa.Array) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def _byte_ranges(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    width = 8 if wide else 4
    _, offsets, buffer = array.buffers()
    ends = np.frombuffer(offsets, f"<i{width}", count=len(array) + 1, offset=width * array.offset).astype(np.int64)
    data = np.zeros(int(ends[-1] - ends[0]) + 8, np.uint8)
    if buffer is not None:
        data[:-8] = np.frombuffer(buffer, np.uint8)[ends[0] : ends[-1]]
    return data, ends[:-1] - ends[0], np.diff(ends)


def _buffer(array: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    dtype = np.dtype(dtype)
    if array.buffers()[1] is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=dtype.itemsize * array.offset)


def _is_direct(kind: pa.DataType) -> bool:
    tests = (pa.types.is_signed_integer, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_float32, pa.types.is_float64)
    return any(test(kind) for test in tests) and not pa.types.is_interval(kind)
