"""Groups: sorted by hash with collisions confirmed on the key; their form in layers depends on the content alone."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nosync.kernels.groups import Groups, concat, from_batch, sort_by_key, tidy


@pytest.mark.parametrize("seed", range(100))
def test_equal_keys_come_together_in_one_order_whatever_collides(seed: int) -> None:
    chance = random.Random(seed)
    keys = [(chance.choice([None, "", "a", "b"]), chance.choice([None, 1, 2])) for _ in range(chance.randint(1, 30))]
    spread = chance.choice([1, 2, 1000])
    hashes = np.array([(sum(map(ord, x or "z")) * 31 + (y or 9)) % spread for x, y in keys], np.uint64)
    columns = [pa.array([x for x, _ in keys], pa.string()), pa.array([y for _, y in keys], pa.int32())]
    order, starts = sort_by_key(hashes, columns)
    groups = [sorted(order[a:b].tolist()) for a, b in zip(starts, [*starts[1:], len(keys)], strict=True)]
    assert sorted(i for group in groups for i in group) == list(range(len(keys)))
    assert all(len({keys[i] for i in group}) == 1 for group in groups)
    assert len(groups) == len(set(keys)), f"seed {seed}"
    assert (np.diff(hashes[order].astype(np.int64)) >= 0).all()


def test_keys_of_a_dictionary_that_collide_are_kept_apart() -> None:
    key = pa.array(["b", "a", None, "b", "a"]).dictionary_encode()
    order, starts = sort_by_key(np.full(5, 7, np.uint64), [key])
    groups = {frozenset(order[a:b].tolist()) for a, b in zip(starts, [*starts[1:], 5], strict=True)}
    assert groups == {frozenset((0, 3)), frozenset((1, 4)), frozenset((2,))}


@pytest.mark.parametrize("coded", [False, True])
def test_no_rows_are_no_groups(coded: bool) -> None:
    key = pa.array([], pa.string())
    order, starts = sort_by_key(np.zeros(0, np.uint64), [key.dictionary_encode() if coded else key])
    assert len(order) == len(starts) == 0


def test_without_key_columns_all_rows_are_one_group() -> None:
    order, starts = sort_by_key(np.full(4, 42, np.uint64), [])
    assert len(order) == 4 and starts.tolist() == [0]


def groups(n: list[int], additive: dict[str, list[int]], best: list[str | None]) -> Groups:
    size = len(n)
    return Groups(
        np.arange(size, dtype=np.uint64), [pa.array(range(size), pa.int32())], np.array(n, np.int64),
        {name: np.array(column, np.int64) for name, column in additive.items()}, {"max1": pa.array(best, pa.string())},
    )


def test_columns_that_hold_nothing_are_left_out() -> None:
    batch = groups([1, 2], {"sum0.0": [0, 0], "sum0.1": [0, 3], "nulls0": [0, 0]}, [None, None]).to_batch()
    assert batch.schema.names == ["_hash", "k0", "n", "sum0.1"]


def test_the_order_of_columns_does_not_depend_on_the_order_of_making() -> None:
    one = groups([1], {"b": [1], "a": [2]}, ["x"]).to_batch()
    other = groups([1], {"a": [2], "b": [1]}, ["x"]).to_batch()
    assert one.equals(other)


def test_what_goes_into_a_batch_comes_out() -> None:
    before = groups([1, 0], {"sum0.0": [5, -7]}, ["x", None])
    after = from_batch(before.to_batch(), 1, {"max1": pa.string()})
    assert after.to_batch().equals(before.to_batch())


def test_missing_columns_are_zero_and_null() -> None:
    other = Groups(np.array([9], np.uint64), [pa.array([1], pa.int32())], np.array([2]), {"b": np.array([6])}, {})
    both = concat([groups([1], {"a": [5]}, ["x"]), other])
    assert both.additive["a"].tolist() == [5, 0] and both.additive["b"].tolist() == [0, 6]
    assert both.best["max1"].to_pylist() == ["x", None]


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.string(), ["a", None, "bcd"]),
        (pa.float64(), [1.5, None, 2.0]),
        (pa.bool_(), [True, None, False]),
        (pa.decimal128(9, 2), [1, None, 2]),
    ],
)
def test_equal_values_become_equal_bytes_whatever_they_were_cut_from(type: pa.DataType, values: list[object]) -> None:
    plain = pa.array(values, type)
    longer = pa.array([values[2], *values, *values], type)
    hidden = pa.array([values[0], values[2], values[2]], type)
    masked = pc.if_else(pa.array([True, False, True]), hidden, pa.scalar(None, type))
    forms = [plain, longer.slice(1, 3), pa.concat_arrays([longer]).slice(4), pa.array(values * 9, type).slice(0, 3), masked]
    bytes = {pa.record_batch([tidy(form)], ["x"]).serialize().to_pybytes() for form in forms}
    assert len(bytes) == 1
