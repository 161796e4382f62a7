"""Rows are equal exactly when their canonical bytes are, for every Arrow type."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.model.errors import Internal
from nosync.state.canonical import canonical_bytes, rows_equal

D = decimal.Decimal
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1)
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])

POOLS: dict[pa.DataType, list[Any]] = {
    pa.null(): [None],
    pa.bool_(): [None, False, True],
    pa.int8(): [None, 0, -128, 127],
    pa.int16(): [None, 0, -1],
    pa.int32(): [None, 0, 1, -1],
    pa.int64(): [None, 0, -(2**63), 2**63 - 1],
    pa.uint64(): [None, 0, 2**64 - 1],
    pa.float32(): [None, 0.0, -0.0, 1.5, math.inf, -math.inf, math.nan],
    pa.float64(): [None, 0.0, -0.0, 5e-324, math.inf, math.nan, -math.nan],
    pa.decimal128(38, 2): [None, D("0.00"), D("-0.01"), D("99999999999999999999.99")],
    pa.string(): [None, "", "a", "a\0", "ab", "日本", "x" * 50],
    pa.large_string(): [None, "", "a", "b"],
    pa.binary(): [None, b"", b"\0", b"\0\0"],
    pa.large_binary(): [None, b"", b"\xff"],
    pa.binary(3): [None, b"abc", b"\0\0\0"],
    pa.date32(): [None, DAY, dt.date(1969, 12, 31)],
    pa.timestamp("us"): [None, NOON],
    pa.timestamp("us", "UTC"): [None, NOON.replace(tzinfo=dt.UTC)],
    pa.duration("us"): [None, dt.timedelta(0), dt.timedelta(days=-1)],
    pa.month_day_nano_interval(): [None, pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([1, 2, 4])],
    PAIR: [None, {"a": None, "b": None}, {"a": 0, "b": ""}, {"a": 1, "b": "x"}],
    pa.list_(pa.string()): [None, [], [None], [""], ["", ""], ["ab"], ["a", "b"]],
    pa.large_list(pa.float64()): [None, [], [math.nan], [0.0], [-0.0]],
    pa.list_(pa.int8(), 2): [None, [1, 2], [1, None]],
    pa.map_(pa.string(), pa.int32()): [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]],
    pa.list_(PAIR): [None, [], [None], [{"a": None, "b": None}], [{"a": 1, "b": None}]],
    pa.list_(pa.list_(pa.int32())): [None, [], [[]], [None], [[], []], [[1], [2]], [[1, 2]]],
    pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.string())))]): [None, {"m": None}, {"m": [(1, ["a"])]}, {"m": [(1, ["a", None])]}],
    pa.dictionary(pa.int32(), pa.string()): [None, "a", "b"],
}


def identity(value: Any) -> Any:
    """A Python value that is equal for equal rows only."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, dict):
        return tuple((name, identity(inner)) for name, inner in value.items())
    if isinstance(value, list):
        entries = [identity(inner) for inner in value]
        return ("map", frozenset(entries)) if value and isinstance(value[0], tuple) else ("list", tuple(entries))
    if isinstance(value, tuple):
        return tuple(identity(inner) for inner in value)
    return value


def column(kind: pa.DataType, values: list[Any], pick: random.Random) -> pa.Array:
    """The values as an array that is a slice of a longer one, half of the time."""
    if pick.random() < 0.5:
        return pa.array(values, kind)
    pool = POOLS[kind]
    return pa.array([pick.choice(pool), *values, pick.choice(pool), pick.choice(pool)], kind).slice(1, len(values))


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_bytes_are_equal_exactly_when_values_are(kind: pa.DataType) -> None:
    pick = random.Random(str(kind))
    values = [pick.choice(POOLS[kind]) for _ in range(60)]
    encoded = canonical_bytes([column(kind, values, pick)]).to_pylist()
    for one, left in zip(values, encoded, strict=True):
        for other, right in zip(values, encoded, strict=True):
            assert (identity(one) == identity(other)) == (left == right), (one, other)


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_rows_equal_agrees_with_the_bytes(kind: pa.DataType) -> None:
    pick = random.Random(str(kind))
    left = column(kind, [pick.choice(POOLS[kind]) for _ in range(300)], pick)
    right = column(kind, [pick.choice(POOLS[kind]) for _ in range(300)], pick)
    expected = [a == b for a, b in zip(canonical_bytes([left]).to_pylist(), canonical_bytes([right]).to_pylist(), strict=True)]
    assert rows_equal([left], [right]).tolist() == expected


@pytest.mark.parametrize("seed", range(30))
def test_several_columns_never_run_into_each_other(seed: int) -> None:
    pick = random.Random(seed)
    kinds = pick.sample(list(POOLS), 3)
    data = [[pick.choice(POOLS[kind]) for _ in range(80)] for kind in kinds]
    columns = [column(kind, values, pick) for kind, values in zip(kinds, data, strict=True)]
    rows = [identity(row) for row in zip(*data, strict=True)]
    encoded = canonical_bytes(columns).to_pylist()
    assert len(set(encoded)) == len(set(rows)) == len(set(zip(encoded, rows, strict=True)))
    other = np.random.default_rng(seed).permutation(80)
    expected = [rows[i] == rows[j] for i, j in enumerate(other)]
    assert rows_equal(columns, [c.take(pa.array(other)) for c in columns]).tolist() == expected


def test_what_lies_under_a_null_does_not_show() -> None:
    dirty = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([7, 8, 9]).tobytes())])
    assert canonical_bytes([dirty]).equals(canonical_bytes([pa.array([7, None, None], pa.int64())]))
    child = pa.array([1, 2, 3])
    hidden = pa.StructArray.from_arrays([child], ["a"], mask=pa.array([False, True, True]))
    assert rows_equal([hidden], [pa.array([{"a": 1}, None, None], hidden.type)]).all()


def test_every_nan_pattern_is_the_same_value() -> None:
    patterns = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    array = pa.array(patterns, from_pandas=False)
    assert len(set(canonical_bytes([array]).to_pylist())) == 1
    assert rows_equal([array], [array.take(pa.array([1, 2, 0]))]).all()


def test_text_width_and_chunks_do_not_show() -> None:
    chunked = pa.chunked_array([pa.array(["a"]), pa.array(["b", None])])
    wide = pa.array(["a", "b", None], pa.large_string())
    assert canonical_bytes([chunked]).equals(canonical_bytes([wide]))
    assert canonical_bytes([wide.cast(pa.string_view())]).equals(canonical_bytes([wide]))
    assert rows_equal([chunked], [wide]).all()


def test_rows_without_columns_are_all_equal() -> None:
    assert canonical_bytes([], rows=2).to_pylist() == [b"", b""]
    assert rows_equal([], [], rows=2).tolist() == [True, True]
    with pytest.raises(Internal):
        canonical_bytes([])


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_no_rows_give_no_bytes(kind: pa.DataType) -> None:
    empty = pa.array([], kind)
    assert len(canonical_bytes([empty])) == 0
    assert len(rows_equal([empty], [empty])) == 0
