"""One canonical binary string per row, and equality of rows, for every Arrow type.

Promise: two rows are equal exactly when their bytes are equal. Null equals null, all NaN are one value, -0.0 and 0.0 differ, maps are equal
when they hold the same entries in whatever order. Validity, slicing, hidden bytes under nulls, string width and dictionary encoding do not
show. The bytes order rows the same way everywhere; that order has no other meaning.

Format of a row: its columns one after the other, each self-delimiting, little endian.
  fixed width   one byte 1 and the value, or one byte 0 and zeros for null
  text, binary  length as int64 (-1 for null), then the bytes
  list, map     number of entries as int64 (-1 for null), then the entries (those of a map in the order of their bytes)
  struct        one byte 1 or 0, then the fields (all null under a null struct)

Pure and vectorised. Called wherever equal hashes must be distinguished: search, merge, retain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.errors import Internal

Bools = npt.NDArray[np.bool_]
Part = Any  # a numpy array of fixed-width fields, or a LargeBinaryArray without nulls


def canonical_bytes(columns: Sequence[pa.Array], rows: int | None = None) -> pa.LargeBinaryArray:
    """Rows as byte strings that can be sorted, hashed and compared, whatever the types are.

    Give `rows` when there may be no columns at all (the key of a global aggregate).
    """
    count = _row_count(columns, rows)
    parts: list[Part] = [part for column in columns for part in _encode(column)]
    pieces = _pack(parts, count)
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))


def rows_equal(left: Sequence[pa.Array], right: Sequence[pa.Array], rows: int | None = None) -> Bools:
    """Where row i on the left is the same row as row i on the right, by the rules of `canonical_bytes`.

    Much cheaper than making the bytes unless columns are nested.
    """
    equal = np.ones(_row_count(left, rows), dtype=np.bool_)
    for one, other in zip(left, right, strict=True):
        equal &= _column_equal(_plain(one), _plain(other))
    return equal


def _row_count(columns: Sequence[pa.Array], rows: int | None) -> int:
    if columns:
        return len(columns[0])
    if rows is None:
        raise Internal("rows without columns need their number")
    return rows


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The same values without chunks, dictionaries, views, runs or extension types."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(array))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return array.cast(pa.large_list(kind.value_type))
    return array


def _column_equal(left: pa.Array, right: pa.Array) -> Bools:
    kind = left.type
    if pa.types.is_null(kind):
        return np.asarray(_valid(right) ^ True)
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return _numpy(pc.equal(canonical_bytes([left]), canonical_bytes([right])))
    if pa.types.is_floating(kind):
        left_valid, right_valid = _valid(left), _valid(right)
        same = _float_bits(left) == _float_bits(right)
        return np.asarray((same & left_valid & right_valid) | ~(left_valid | right_valid))
    same = pc.equal(left, right)
    if same.null_count:
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        same = pc.if_else(pc.is_null(same), both_null, same)
    return _numpy(same)


def _encode(array: pa.Array | pa.ChunkedArray) -> Iterator[Part]:
    array = _plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        yield _valid(array).astype(np.uint8)
        for field in array.flatten():
            yield from _encode(field)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_map(kind):
        yield from _encode_entries(array)
    elif is_bytes(kind):
        yield _lengths(pc.binary_length(array), absent=-1)
        data = array.cast(pa.large_binary())
        yield data.fill_null(b"") if data.null_count else data
    else:
        yield _valid(array).astype(np.uint8)
        if not pa.types.is_null(kind):
            yield _fixed(array)


def _encode_entries(array: pa.Array) -> Iterator[Part]:
    """A list as the bytes of its entries: the entries are encoded at once and cut by the lists' offsets."""
    is_map = pa.types.is_map(array.type)
    if is_map:
        array = _map_as_list(array)
    lengths = pc.list_value_length(array)
    yield _lengths(lengths, absent=-1)
    counts = _lengths(lengths, absent=0)
    entries = canonical_bytes([array.flatten()])
    if is_map:
        order = np.repeat(np.arange(len(array)), counts)
        entries = entries.take(pc.sort_indices(pa.table({"row": order, "entry": entries}), [("row", "ascending"), ("entry", "ascending")]))
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.frombuffer(entries.buffers()[1], dtype=np.int64)[entries.offset :][: len(entries) + 1]
    yield pa.Array.from_buffers(pa.large_binary(), len(array), [None, pa.py_buffer(offsets[ends]), entries.buffers()[2]])


def _map_as_list(array: pa.MapArray) -> pa.ListArray:
    """The map as a list of (key, value); the mask and the slice are kept by sharing its buffers."""
    entry = pa.struct([pa.field("key", array.type.key_type, nullable=True), pa.field("value", array.type.item_type)])
    everything = pa.StructArray.from_arrays([array.keys, array.items], fields=list(entry))
    return pa.Array.from_buffers(
        pa.list_(entry), len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[everything]
    )


def _pack(parts: list[Part], rows: int) -> list[pa.LargeBinaryArray]:
    """Neighbouring fixed-width parts side by side in one binary array, the others as they are."""
    pieces: list[pa.LargeBinaryArray] = []
    fixed: list[npt.NDArray[Any]] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            fixed.append(part)
            continue
        if fixed:
            pieces.append(_side_by_side(fixed, rows))
        fixed = []
        pieces.append(part)
    if fixed or not pieces:
        pieces.append(_side_by_side(fixed, rows))
    return pieces


def _side_by_side(fields: list[npt.NDArray[Any]], rows: int) -> pa.LargeBinaryArray:
    packed = np.empty(rows, dtype=[(f"f{position}", field.dtype) for position, field in enumerate(fields)])
    for position, field in enumerate(fields):
        packed[f"f{position}"] = field
    offsets = np.arange(rows + 1, dtype=np.int64) * packed.dtype.itemsize
    return pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(packed.tobytes())])


def _fixed(array: pa.Array) -> npt.NDArray[Any]:
    """Values of a fixed-width column, zero where null."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    values = _float_bits(array) if pa.types.is_floating(array.type) else _values(array)
    if not array.null_count:
        return values
    values = values.copy()
    values[~_valid(array)] = np.zeros((), values.dtype)
    return values


def _values(array: pa.Array) -> npt.NDArray[Any]:
    """The value buffer as numpy sees it: integers where they exist, raw bytes otherwise."""
    width = array.type.bit_width // 8
    dtype = np.dtype(f"<u{width}") if width in (1, 2, 4, 8) else np.dtype(f"V{width}")
    buffer = array.buffers()[1]
    if buffer is None or width == 0 or len(array) == 0:
        return np.zeros(len(array), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * width)


def _float_bits(array: pa.Array) -> npt.NDArray[Any]:
    """The bits of each number, with one pattern for all NaN."""
    bits = _values(array)
    numbers = bits.view(np.dtype(f"<f{bits.dtype.itemsize}"))
    strange = np.isnan(numbers)
    if not strange.any():
        return bits
    return np.where(strange, np.array(np.nan, numbers.dtype).view(bits.dtype), bits)


def is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _lengths(lengths: pa.Array, absent: int) -> npt.NDArray[np.int64]:
    return np.asarray(lengths.cast(pa.int64()).fill_null(absent).to_numpy(zero_copy_only=False))


def _valid(array: pa.Array) -> Bools:
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return _numpy(array.is_valid())


def _numpy(booleans: pa.BooleanArray) -> Bools:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), dtype=np.bool_)
