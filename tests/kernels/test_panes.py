"""A sliding window is the sum of its panes, and panes are added to once."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.accumulate import Accumulation, advance, grouped
from nosync.kernels.functions import Result
from nosync.kernels.panes import Panes, closed, spread, without_calls
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

TIME = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", TIME), ("end", TIME)])
SPEC = Accumulation((pa.int64(), WINDOW), (pa.int64(),), (Result("count", (), pa.int64()), Result("sum", (0,), pa.int64())))
PANES = Panes(1, 12, 3)
Event = tuple[int, int, int]  # key, time, value


def change(events: list[Event]) -> pa.RecordBatch:
    starts = [time // 3 * 3 for _, time, _ in events]
    windows = pa.array([{"start": start, "end": start + 12} for start in starts], WINDOW)
    spread = [key * 0x9E3779B97F4A7C15 % 2**64 >> 24 << 24 for key, *_ in events]
    hashes = np.array([upper | (start & 0xFFFFFF) for upper, start in zip(spread, starts, strict=True)], np.uint64)
    keys = [pa.array([key for key, *_ in events], pa.int64()), windows]
    return grouped(SPEC, hashes, keys, [pa.array([value for *_, value in events], pa.int64())], np.ones(len(events), np.int64))


@pytest.mark.parametrize("seed", range(12))
def test_windows_close_with_the_sum_of_their_rows(tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    cover: list[Layer] = []
    events: list[Event] = []
    since, until = None, None
    for epoch in range(1, 9):
        emitted = closed(SPEC, PANES, cover, since, until)
        found = set()
        if emitted is not None:
            columns = [column.to_pylist() for column in (*emitted.keys, *SPEC.finish(emitted))]
            found = {(k, round(w["end"].timestamp() * 1e6), n, v) for k, w, n, v in zip(*columns, strict=True)}
        assert found == expected(events, since, until), epoch
        low = -6 if until is None else until - 9
        fresh = [(int(chance.integers(0, 3)), int(chance.integers(low, low + 30)), int(chance.integers(-9, 9))) for _ in range(6)]
        step = advance(SPEC, cover, change(fresh))
        facts = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": epoch, "upper": epoch + 1, "kind": "upserts", "run": "r"}
        cover.insert(0, open_layer(tmp_path, write_layer(tmp_path, f"{epoch}.arrow", [step.after.to_batch()], **facts)))
        events += fresh
        since, until = until, int(chance.integers(-3, 9)) if until is None else until + int(chance.integers(0, 12))


def expected(events: list[Event], since: int | None, until: int | None) -> set[tuple[int, int, int, int]]:
    if until is None:
        return set()
    found: dict[tuple[int, int], list[int]] = {}
    for key, time, value in events:
        for end in range(time // 3 * 3 + 3, time // 3 * 3 + 13, 3):
            if (since is None or end > since) and end <= until:
                found.setdefault((key, end), []).append(value)
    return {(key, end, len(values), sum(values)) for (key, end), values in found.items()}


def test_rows_that_only_call_leave_nothing_behind() -> None:
    real = change([(1, 4, 2)])
    nothing = [pa.nulls(1, pa.int64()), pa.nulls(1, WINDOW)]
    calls = grouped(SPEC, np.array([0], np.uint64), nothing, nothing[:1], np.zeros(1, np.int64))
    assert len(without_calls(real)) == 1 and len(without_calls(calls)) == 0


@pytest.mark.parametrize("until", [None, 9])
def test_a_change_is_spread_over_the_windows_that_are_open(until: int | None) -> None:
    events = [(1, 4, 2), (1, 5, 3), (2, 4, 7), (1, 8, 1)]
    windows = spread(SPEC, PANES, change(events), until)
    columns = [column.to_pylist() for column in (*windows.keys, *SPEC.finish(windows))]
    found = {(k, round(w["end"].timestamp() * 1e6), n, v) for k, w, n, v in zip(*columns, strict=True)}
    assert found == expected(events, until, 1000)
    assert (np.diff(windows.hashes.astype(object)) >= 0).all()
