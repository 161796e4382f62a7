"""Order and extremes against Python's own sorting."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.order import best, codes, orderable
from nosync.model.errors import Internal
from nosync.state.canonical import canonical_bytes

D = decimal.Decimal
NOON = dt.datetime(2024, 2, 29, 12)
FLOATS = [0.0, -0.0, 1.5, -1.5, 5e-324, 3e38, -3e38, math.inf, -math.inf, math.nan, -math.nan]
LONG_TEXTS = ["abcdefgh", "abcdefgh\0", "abcdefghi", "x" * 32, "x" * 33, "x" * 40, "x" * 32 + "y"]
TEXTS = ["", "a", "a\0", "a\0\0", "ab", "b", "é", "日本", "🙂", *LONG_TEXTS]

POOLS: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [False, True],
    pa.int8(): [-128, 0, 127],
    pa.int16(): [-5, 7],
    pa.int32(): [-(2**31), -1, 0, 1, 2**31 - 1],
    pa.int64(): [-(2**63), -(2**63) + 1, -1, 0, 2**63 - 1],
    pa.float32(): [value for value in FLOATS if value != 5e-324],
    pa.float64(): [*FLOATS, 1e308, -1e308],
    pa.date32(): [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("us"): [NOON, NOON - dt.timedelta(days=30000), NOON + dt.timedelta(microseconds=1)],
    pa.timestamp("us", "UTC"): [NOON.replace(tzinfo=dt.UTC)],
    pa.duration("us"): [dt.timedelta(0), dt.timedelta(days=-1), dt.timedelta(days=1)],
    pa.decimal128(10, 2): [D("-1.00"), D("0.00"), D("12345678.90")],
    pa.decimal128(38, 2): [D(10) ** 35, -(D(10) ** 35), D(2**64) / 4, D(-(2**64)) / 4, D("0.00"), D("-0.01"), D(2**64) / 4 + 1],
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): [text.encode() for text in TEXTS] + [b"\xff", b"\x80", b"\x7f"],
    pa.large_binary(): [b"", b"\xff" * 9, b"\xff" * 8],
}


def position(value: Any, one_zero: bool) -> Any:
    """What Python sorts by to get Spark's order."""
    if isinstance(value, float):
        if math.isnan(value):
            return (1, 0.0, 0.0)
        return (0, value, 0.0 if one_zero or value else math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


def column(kind: pa.DataType, rows: int, pick: random.Random, nulls: float) -> pa.Array:
    """Values of the pool, sliced out of a longer array; few different ones half of the time."""
    pool = POOLS[kind] if pick.random() < 0.5 else pick.sample(POOLS[kind], min(2, len(POOLS[kind])))
    values = [None if pick.random() < nulls else pick.choice(pool) for _ in range(rows + 7)]
    return pa.array(values, kind).slice(4, rows)


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_codes_compare_like_the_values(kind: pa.DataType, seed: int) -> None:
    array = column(kind, 60, random.Random(seed), 0.1 * (seed % 2))
    assert orderable(kind)
    code = codes(array)
    assert code.dtype == np.int64 and len(code) == 60
    rows = [(position(value, True), int(c)) for value, c in zip(array.to_pylist(), code, strict=True) if value is not None]
    for one, left in rows:
        for other, right in rows:
            assert (one < other) == (left < right) and (one == other) == (left == right)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("kind", list(POOLS), ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_best_is_the_extreme_of_each_group(kind: pa.DataType, seed: int, largest: bool) -> None:
    pick = random.Random(seed)
    array = column(kind, 200, pick, [0.0, 0.1, 0.8, 1.0][seed % 4])
    starts = [0, *sorted(pick.sample(range(1, 200), 40))]
    result = best(array, np.array(starts), largest)
    result.validate(full=True)
    assert result.type == kind
    values = array.to_pylist()
    for found, begin, end in zip(result.to_pylist(), starts, [*starts[1:], 200], strict=True):
        present = [position(value, False) for value in values[begin:end] if value is not None]
        expected = (max if largest else min)(present) if present else None
        assert (None if found is None else position(found, False)) == expected


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_random_texts_of_many_lengths(seed: int, largest: bool) -> None:
    pick = random.Random(seed)
    values = ["".join(pick.choices("ab\0", k=pick.randint(0, 45))) for _ in range(3000)]
    starts = np.arange(0, 3000, 30)
    expected = [(max if largest else min)(values[start : start + 30]) for start in starts]
    assert best(pa.array(values), starts, largest).to_pylist() == expected


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("nulls", [0.0, 0.5, 0.99, 1.0])
def test_many_rows_of_few_texts(kind: pa.DataType, nulls: float, largest: bool) -> None:
    array = column(kind, 5000, random.Random(3), nulls)
    starts = np.arange(0, 5000, 10)
    result = best(array, starts, largest)
    alone = [best(array.slice(start, 10), np.array([0]), largest) for start in starts]
    assert result.equals(pa.concat_arrays(alone))


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_the_result_does_not_depend_on_the_order_of_rows(kind: pa.DataType) -> None:
    array = pa.array(POOLS[kind] * 3, kind)
    for seed in range(5):
        shuffled = array.take(pa.array(np.random.default_rng(seed).permutation(len(array))))
        for largest in (False, True):
            one, other = best(array, np.array([0]), largest), best(shuffled, np.array([0]), largest)
            assert canonical_bytes([one]).equals(canonical_bytes([other]))


@pytest.mark.parametrize("kind", list(POOLS), ids=str)
def test_no_rows_have_no_best(kind: pa.DataType) -> None:
    empty = pa.array([], kind)
    assert len(best(empty, np.array([], np.int64), True)) == 0
    assert len(codes(empty)) == 0


def test_codes_of_numbers_hold_across_calls() -> None:
    assert codes(pa.array([1.0]))[0] < codes(pa.array([2.0]))[0] < codes(pa.array([math.nan]))[0]
    assert codes(pa.array([0.0]))[0] == codes(pa.array([-0.0]))[0]


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32()), pa.null()])
def test_nested_values_have_no_order(kind: pa.DataType) -> None:
    assert not orderable(kind)
    with pytest.raises(Internal):
        codes(pa.nulls(1, kind))
    with pytest.raises(Internal):
        best(pa.nulls(1, kind), np.array([0]), True)
