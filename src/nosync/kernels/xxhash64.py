"""Spark's `xxhash64` of columns, without Spark.

Promise: the same 64 bits as `pyspark.sql.functions.xxhash64`, seen as unsigned, so that rows hashed by a task and rows hashed by
Spark meet in the same shard at the same place. The hash so far is the seed of the next column, the first seed is 42, and null
leaves the hash as it is. Spark hashes by width: int and bigint of one value differ, so give the columns Spark's own types.

Pure and vectorised, in blocks of rows that stay in the processor's cache. Called where tasks read input themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nosync.kernels.exact import decimal_words
from nosync.model.errors import Internal
from nosync.state.canonical import is_bytes

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

SEED = 42
BLOCK_ROWS = 1 << 14
PRIME_1, PRIME_2, PRIME_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME_4, PRIME_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
WRAP = (1 << 64) - 1


def hashable(kind: pa.DataType) -> bool:
    """Whether `hash_columns` knows Spark's hash of this type; if not, let Spark compute it."""
    if pa.types.is_dictionary(kind):
        return hashable(kind.value_type)
    if pa.types.is_struct(kind):
        return all(hashable(field.type) for field in kind)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return bool(kind.unit == "us")
    return is_bytes(kind) or any(test(kind) for test in (pa.types.is_null, pa.types.is_decimal128, _is_long, _is_int, _is_float))


def hash_columns(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Words:
    """The unsigned hash of each row; `SEED` for rows without columns."""
    whole = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    result = np.full(rows, SEED, np.uint64)
    if whole and pa.types.is_dictionary(whole[0].type) and len(whole[0].dictionary) <= rows:
        result = _hash_coded(whole.pop(0))
    for start in range(0, rows, BLOCK_ROWS):
        block = result[start : start + BLOCK_ROWS]
        hashes: Words = block
        for column in whole:
            hashes = _hash(column.slice(start, len(block)), hashes)
        block[:] = hashes
    return result


def _hash_coded(array: pa.DictionaryArray) -> Words:
    """The hashes of a first column, each different value hashed once."""
    hashes = np.append(hash_columns([array.dictionary], len(array.dictionary)), np.uint64(SEED))
    codes = array.indices.fill_null(len(array.dictionary)) if array.indices.null_count else array.indices
    found: Words = hashes[codes.to_numpy()]
    return found


def _hash(array: pa.Array, seed: Words) -> Words:
    kind = array.type
    if pa.types.is_null(kind):
        return seed
    if pa.types.is_dictionary(kind):
        return _hash(array.dictionary_decode(), seed)
    if pa.types.is_struct(kind):
        for field in array.flatten():
            seed = _hash(field, seed)
        return seed
    hashed = _hash_valid(array, seed)
    if array.null_count:
        np.copyto(hashed, seed, where=array.is_null().to_numpy(zero_copy_only=False))
    return hashed


def _hash_valid(array: pa.Array, seed: Words) -> Words:
    """Hashes as if nothing were null, in a new array."""
    kind = array.type
    if is_bytes(kind):
        return _hash_bytes(*_byte_ranges(array), seed)
    if _is_float(kind):
        return _hash_float(array, seed)
    if pa.types.is_decimal128(kind):
        return _hash_decimal(array, seed)
    if _is_long(kind):
        return _hash_longs(_buffer(array, np.uint64), seed)
    if _is_int(kind):
        integers = array.cast(pa.int32())
        return _hash_ints(_buffer(integers, np.uint32), seed)
    raise Internal(f"columns of type {kind} have no hash here", hint="Ask `hashable` first and let Spark hash the others.")


def _hash_ints(values: npt.NDArray[np.uint32], seed: Words) -> Words:
    hashes = seed + ((PRIME_5 + 4) & WRAP)
    _mix_int(hashes, values.astype(np.uint64))
    return _finish(hashes)


def _hash_longs(values: Words, seed: Words) -> Words:
    hashes = seed + ((PRIME_5 + 8) & WRAP)
    _mix_long(hashes, values * PRIME_2)
    return _finish(hashes)


def _hash_float(array: pa.Array, seed: Words) -> Words:
    """By Java's bits: one NaN, one zero."""
    double = pa.types.is_float64(array.type)
    numbers = _buffer(array, np.float64 if double else np.float32).copy()
    numbers[numbers == 0] = 0.0
    numbers[np.isnan(numbers)] = np.nan
    return _hash_longs(numbers.view(np.uint64), seed) if double else _hash_ints(numbers.view(np.uint32), seed)


def _hash_decimal(array: pa.Decimal128Array, seed: Words) -> Words:
    """Up to 18 places as a long, beyond as the shortest big-endian bytes in two's complement."""
    low, high = decimal_words(array)
    if array.type.precision <= 18:
        return _hash_longs(low.view(np.uint64), seed)
    data = np.empty((len(array), 2), ">i8")
    data[:, 0], data[:, 1] = high, low
    sign = high >> 63
    low_bits, high_bits = (low ^ sign).view(np.uint64), (high ^ sign).view(np.uint64)
    length = np.ones(len(array), np.int64)
    for size in range(1, 9):
        limit = np.uint64(1 << (8 * size - 1))
        length += (high_bits != 0) | (low_bits >= limit)
        if size < 8:
            length += high_bits >= limit
    begin = np.arange(16, 16 * len(array) + 16, 16) - length
    return _hash_bytes(data.reshape(-1).view(np.uint8), begin, length, seed)


def _hash_bytes(data: npt.NDArray[np.uint8], begin: Ints, length: Ints, seed: Words) -> Words:
    """Hashes of data[begin : begin + length] row by row: stripes of 32 bytes, then words of 8, one of 4, then single bytes."""
    hashes = seed + PRIME_5
    rows = np.flatnonzero(length >= 32)
    if len(rows):
        hashes[rows] = _hash_stripes(data, begin[rows], length[rows], seed[rows])
    hashes += length.view(np.uint64)
    longs, tail = begin + (length & ~31), length & 31
    for word in range(int(tail.max(initial=0)) // 8):
        rows = np.flatnonzero(tail >= 8 * (word + 1))
        _at(hashes, rows, _mix_long, _load(data, np.uint64, longs[rows] + 8 * word) * PRIME_2)
    rows = np.flatnonzero(length & 4)
    if len(rows):
        _at(hashes, rows, _mix_int, _load(data, np.uint32, begin[rows] + (length[rows] & ~7)))
    last, count = begin + (length & ~3), length & 3
    for step in range(int(count.max(initial=0))):
        rows = np.flatnonzero(count > step)
        _at(hashes, rows, _mix_byte, data[last[rows] + step].astype(np.uint64))
    return _finish(hashes)


def _hash_stripes(data: npt.NDArray[np.uint8], begin: Ints, length: Ints, seed: Words) -> Words:
    """The state after all whole stripes of rows that have at least one; four lanes of words side by side."""
    starts = np.array([(PRIME_1 + PRIME_2) & WRAP, PRIME_2, 0, -PRIME_1 & WRAP], np.uint64)
    lanes: Words = seed[:, None] + starts
    offsets = np.arange(0, 32, 8)
    rows = np.arange(len(begin))
    for stripe in range(int(length.max()) // 32):
        rows = rows[length[rows] >= 32 * (stripe + 1)]
        state = lanes[rows]
        state += _load(data, np.uint64, (begin[rows] + 32 * stripe)[:, None] + offsets) * PRIME_2
        _rotate(state, 31)
        state *= PRIME_1
        lanes[rows] = state
    return _merge_lanes(lanes)


def _merge_lanes(lanes: Words) -> Words:
    turned = lanes.copy()
    for lane, bits in enumerate((1, 7, 12, 18)):
        _rotate(turned[:, lane], bits)
    hashes: Words = turned.sum(axis=1, dtype=np.uint64)
    lanes *= PRIME_2
    _rotate(lanes, 31)
    lanes *= PRIME_1
    for lane in range(4):
        hashes ^= lanes[:, lane]
        hashes *= PRIME_1
        hashes += PRIME_4
    return hashes


def _at(hashes: Words, rows: Ints, mix: Any, values: Words) -> None:
    """Mixes values into the hashes of some rows."""
    if len(rows) == len(hashes):
        mix(hashes, values)
        return
    chosen = hashes[rows]
    mix(chosen, values)
    hashes[rows] = chosen


def _mix_long(hashes: Words, values: Words) -> None:
    """Both arrays are overwritten; the values come multiplied by PRIME_2."""
    _rotate(values, 31)
    values *= PRIME_1
    hashes ^= values
    _rotate(hashes, 27)
    hashes *= PRIME_1
    hashes += PRIME_4


def _mix_int(hashes: Words, values: Words) -> None:
    values *= PRIME_1
    hashes ^= values
    _rotate(hashes, 23)
    hashes *= PRIME_2
    hashes += PRIME_3


def _mix_byte(hashes: Words, values: Words) -> None:
    values *= PRIME_5
    hashes ^= values
    _rotate(hashes, 11)
    hashes *= PRIME_1


def _finish(hashes: Words) -> Words:
    hashes ^= hashes >> 33
    hashes *= PRIME_2
    hashes ^= hashes >> 29
    hashes *= PRIME_3
    hashes ^= hashes >> 32
    return hashes


def _rotate(values: Words, bits: int) -> None:
    wrapped = values >> (64 - bits)
    values <<= bits
    values |= wrapped


def _load(data: npt.NDArray[np.uint8], dtype: Any, positions: Ints) -> Words:
    """Little-endian words at any byte positions, through a view that steps by one byte."""
    size = np.dtype(dtype).itemsize
    words: npt.NDArray[Any] = np.ndarray((len(data) - size + 1,), np.dtype(dtype).newbyteorder("<"), buffer=data, strides=(1,))
    return words[positions].astype(np.uint64, copy=False)


def _byte_ranges(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    width = 8 if wide else 4
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, f"<i{width}", count=len(array) + 1, offset=width * array.offset).astype(np.int64)
    contents = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return contents, ends[:-1], np.diff(ends)


def _buffer(array: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=np.dtype(dtype).itemsize * array.offset)



def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_float64(kind) or pa.types.is_float32(kind))


def _is_long(kind: pa.DataType) -> bool:
    return bool(pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _is_int(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_date32(kind) or kind in (pa.int8(), pa.int16(), pa.int32()))
