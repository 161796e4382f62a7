"""Rows wait for their window to close, are emitted once, and leave nothing behind."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.final import LATEST, ORIGIN, TIME_BITS, release
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

SCHEMA = pa.schema([("_hash", pa.uint64()), ("_row", pa.uint64()), ("c0", pa.int64()), ("_count", pa.int64())])


def change(*rows: tuple[int, int, int]) -> pa.RecordBatch:
    """Rows as (value, when it closes, count)."""
    places = [((value * 37 % 256) << TIME_BITS) | (end + ORIGIN) for value, end, _ in rows]
    values, counts = [value for value, _, _ in rows], [count for *_, count in rows]
    columns = [pa.array(places, pa.uint64()), pa.array(values, pa.uint64()), pa.array(values, pa.int64()), pa.array(counts, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class State:
    """Layers on disk, one an epoch."""

    def __init__(self, home: Path) -> None:
        self.home, self.cover, self.epoch, self.bound = home, list[Layer](), 0, None

    def step(self, batch: pa.RecordBatch, until: int | None) -> dict[int, int]:
        self.epoch += 1
        done = release(self.cover, batch, self.bound, until)
        if done.layer.num_rows:
            facts = {"flow": "f", "trace": "o", "range": ALL_HASHES, "kind": "diffs", "run": "r"}
            facts |= {"lower": self.epoch, "upper": self.epoch + 1}
            self.cover.insert(0, open_layer(self.home, write_layer(self.home, f"{self.epoch}.arrow", [done.layer], **facts)))
        self.bound = until
        return dict(zip(done.rows.column("c0").to_pylist(), done.rows.column("_count").to_pylist(), strict=True))


def test_a_row_is_emitted_once_when_it_closes_as_it_was_then(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert state.step(change((1, 10, 1), (2, 20, 2), (3, -5, 1)), None) == {}
    assert state.step(change((1, 10, -1), (4, 10, 1)), -5) == {3: 1}
    assert state.step(change((5, 30, 1), (6, 10, 1)), 10) == {4: 1}  # 6 comes too late
    assert state.step(change(), 10) == {}
    assert state.step(change((7, LATEST, 1)), 29) == {2: 2}
    assert state.step(change((5, 30, 1)), 30) == {5: 1}  # the second 5 comes too late


@pytest.mark.parametrize("seed", range(10))
def test_what_closes_is_what_was_there_and_not_late(tmp_path: Path, seed: int) -> None:
    chance, state = np.random.default_rng(seed), State(tmp_path)
    waiting: dict[tuple[int, int], int] = {}
    bound = 0
    for _ in range(12):
        rows = [(int(v), int(e), 1) for v, e in zip(chance.integers(0, 500, 8), chance.integers(bound - 5, bound + 40, 8), strict=True)]
        bound += int(chance.integers(0, 15))
        expected: dict[int, int] = {}
        for (value, end), count in [(row, count) for row, count in waiting.items() if row[1] <= bound]:
            expected[value] = expected.get(value, 0) + count
            del waiting[value, end]
        for value, end, count in rows:
            if end > bound:
                waiting[value, end] = waiting.get((value, end), 0) + count
        found = state.step(change(*rows), bound)
        assert sum(found.values()) <= sum(expected.values()) and set(found) == set(expected)
