"""What a merge may leave out: rows of windows, and of whole sessions, that have closed."""

import numpy as np
import pyarrow as pa
import pytest

from nosync.state.expiry import Expired, session_ends

WINDOW = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])


def windows(*found: tuple[int, int] | None) -> pa.RecordBatch:
    values = pa.array([None if one is None else {"start": one[0], "end": one[1]} for one in found], WINDOW)
    return pa.RecordBatch.from_pydict({"_hash": pa.array([7] * len(found), pa.uint64()), "k0": values})


def test_a_window_is_left_out_from_its_end_on() -> None:
    batch = windows((0, 10), (10, 20), None, (20, 30))
    assert Expired("k0", 20).living(batch).tolist() == [False, False, True, True]
    assert Expired("k0", 20).living(batch.slice(1)).tolist() == [False, True, True]


def test_a_session_is_left_out_whole_or_not_at_all() -> None:
    batch = windows((0, 10), (4, 14), (14, 24), (30, 40))
    assert Expired("k0", 20, chained=True).living(batch).tolist() == [True] * 4
    assert Expired("k0", 24, chained=True).living(batch).tolist() == [False, False, False, True]


@pytest.mark.parametrize("seed", range(20))
def test_sessions_are_found_as_a_loop_finds_them(seed: int) -> None:
    chance = np.random.default_rng(seed)
    count = int(chance.integers(0, 40))
    hashes, starts = chance.integers(0, 4, count).astype(np.uint64), chance.integers(0, 60, count)
    ends = starts + chance.integers(1, 9, count)
    expected = np.zeros(count, np.int64)
    for key in set(hashes.tolist()):
        session: list[int] = []
        latest = None
        for place in sorted(np.flatnonzero(hashes == key), key=lambda place: starts[place]):
            if latest is not None and starts[place] > latest:
                expected[session], session, latest = latest, [], None
            session.append(place)
            latest = max(ends[place], latest if latest is not None else ends[place])
        expected[session] = latest
    assert session_ends(hashes, starts, ends).tolist() == expected.tolist()
