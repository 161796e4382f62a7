"""What a fold is given: each key's rows, in an order that depends on them alone, and what was kept."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.fold import States, Touched, previous_states, state_layer, touch
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

HASHES = np.array([4, 4, 7], np.uint64)  # of keys 0 to 2: the first two collide
Rows = list[tuple[int, float | None, list[int], int]]  # key, time, anything, diff


def touched(rows: Rows, order_by: bool, net: bool) -> tuple[Touched, list[tuple[int, list[tuple[Any, ...]]]]]:
    keys = pa.array([row[0] for row in rows], pa.int32())
    columns = [keys, pa.array([row[1] for row in rows], pa.float64()), pa.array([row[2] for row in rows], pa.list_(pa.int64()))]
    diffs = np.array([row[3] for row in rows], np.int64)
    found = touch(HASHES[[row[0] for row in rows]], [keys], columns, columns[1:2] if order_by else [], diffs, net)
    ends = [*found.starts[1:].tolist(), len(found.order)]
    seen = [(*rows[i][:3], int(weight)) for i, weight in zip(found.order, found.weights, strict=True)]
    return found, [(key, seen[a:b]) for key, a, b in zip(found.keys[0].to_pylist(), found.starts, ends, strict=True)]


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_arrival_does_not_matter_and_nulls_come_first(seed: int) -> None:
    chance = random.Random(seed)
    rows: Rows = [(chance.randrange(3), chance.choice([None, 1.5, 2.0, float("inf")]), [chance.randrange(2)], 1) for _ in range(12)]
    answers = [repr(touched(chance.sample(rows, len(rows)), order_by=True, net=False)[1]) for _ in range(3)]
    assert len(set(answers)) == 1
    for _, seen in touched(rows, order_by=True, net=False)[1]:
        times = [-1 if row[1] is None else row[1] for row in seen]
        assert times == sorted(times)


def test_a_row_comes_as_often_as_it_was_added_or_once_with_what_is_left_of_it() -> None:
    added: Rows = [(0, 1.0, [1], 2), (2, 1.0, [1], 1)]
    assert [(key, len(seen)) for key, seen in touched(added, order_by=False, net=False)[1]] == [(0, 2), (2, 1)]
    moved: Rows = [(0, 1.0, [1], 1), (0, 1.0, [1], 1), (0, 2.0, [1], -1), (1, 1.0, [2], 1), (1, 1.0, [2], -1)]
    assert touched(moved, order_by=True, net=True)[1] == [(0, [(0, 1.0, [1], 2), (0, 2.0, [1], -1)])]


def test_states_are_kept_until_they_are_given_up(tmp_path: Path) -> None:
    cover: list[Layer] = []
    expected: list[list[int | None]] = [[None, None], [5, None], [5, 6], [None, 6]]
    for epoch, (states, before) in enumerate(zip([[5, None], [5, 6], [None, 6], [None, None]], expected, strict=True), start=1):
        found, _ = touched([(0, 1.0, [], 1), (2, 1.0, [], 1)], order_by=False, net=False)
        known = previous_states(cover, found, [pa.int64()])
        assert [value if alive else None for value, alive in zip(known.values[0].to_pylist(), known.alive, strict=True)] == before
        after = States(np.array([state is not None for state in states]), [pa.array(states, pa.int64())])
        layer = state_layer(found, known, after)
        assert layer.num_rows == sum(a != b for a, b in zip(states, before, strict=True))
        facts: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "kind": "upserts", "run": "r"}
        info = write_layer(tmp_path, f"{epoch}.layer", [layer], lower=epoch, upper=epoch + 1, **facts)
        cover.insert(0, open_layer(tmp_path, info))
