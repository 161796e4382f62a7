"""How many shards a flow should have."""

import pytest

from nosync.model.scaling import BYTES_A_SHARD, FIXED, FOLLOW, ROWS_A_SHARD, WINDOW, Load


def load(cores: int, rows: int, bytes: int = 0, epochs: int = WINDOW) -> Load:
    return Load(cores, [rows] * epochs, bytes)


@pytest.mark.parametrize(
    ("now", "given", "wanted"),
    [
        (1, load(8, 5 * ROWS_A_SHARD), 5),  # more rows
        (1, load(8, 500 * ROWS_A_SHARD), 8),  # than there are cores
        (8, load(2, 500 * ROWS_A_SHARD), 2),  # cores are gone
        (8, load(8, 10), 1),  # a quiet flow
        (8, load(8, 7 * ROWS_A_SHARD), 8),  # nearly as many: nothing is won
        (4, load(8, 7 * ROWS_A_SHARD), 4),
        (2, load(2, 10, 6 * BYTES_A_SHARD), 6),  # large state
        (2, load(2, 10, 600 * BYTES_A_SHARD), 8),
        (4, load(8, 10, epochs=WINDOW - 1), 4),  # too early to say
    ],
)
def test_shards_follow_cores_rows_and_state(now: int, given: Load, wanted: int) -> None:
    assert FOLLOW.shards(now, given) == wanted
    assert FOLLOW.shards(wanted, given) == wanted, "it comes to rest"
    assert FIXED.shards(now, given) == now


def test_a_single_burst_changes_nothing() -> None:
    assert FOLLOW.shards(1, Load(8, [10] * (WINDOW - 1) + [10_000_000], 0)) == 1
