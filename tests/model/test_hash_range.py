"""Ranges of hashes, the shards that they are cut into, and what of a trace they find."""

import random
from itertools import pairwise

import pytest

from nosync.journal.names import LAYER, layer_path
from nosync.model.hash_range import ALL_HASHES, HashRange
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_of, shard_ranges, shards_in
from nosync.state.cover import layer_ranges


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 7, 64, 1000])
def test_the_ranges_of_shards_meet_without_a_gap_and_hold_their_hashes(shards: int) -> None:
    ranges = shard_ranges(shards)
    assert (ranges[0].lower, ranges[-1].upper) == ALL_HASHES
    assert all(one.upper == other.lower for one, other in pairwise(ranges))
    for hash in [random.Random(shards).getrandbits(64) for _ in range(200)] + [0, (1 << 64) - 1]:
        assert [p for p, held in enumerate(ranges) if held.contains(hash)] == [shard_of(hash, shards)]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16])
def test_a_range_is_read_back_from_its_text(shards: int) -> None:
    for held in [*shard_ranges(shards), HashRange(5, 6), HashRange(0, 1), HashRange((1 << 64) - 1, 1 << 64)]:
        assert HashRange.parse(str(held)) == held


@pytest.mark.parametrize("text", ["", "0", "8-7", "00-f", "0-ff", "-1-f", "0-f-f", "g-f", "0-11111111111111111", "0x1-f"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        HashRange.parse(text)


def test_the_text_of_a_range_is_short_where_its_bounds_are_round() -> None:
    assert [str(ALL_HASHES), *map(str, shard_ranges(4))] == ["0-f", "0-3", "4-7", "8-b", "c-f"]


def test_ranges_overlap_where_they_share_a_hash() -> None:
    halves, thirds = shard_ranges(2), shard_ranges(3)
    assert [[one.overlaps(other) for other in thirds] for one in halves] == [[True, True, False], [False, True, True]]
    assert not HashRange(0, 5).overlaps(HashRange(5, 9))
    assert shards_in([halves[1]], 3) == [1, 2]


def test_the_name_of_a_layer_says_which_hashes_it_holds() -> None:
    path = layer_path("a/b", shard_ranges(2)[1], 3, 5, "7.ab")
    found = LAYER.fullmatch(path)
    assert found is not None and HashRange.parse(found["range"]) == shard_ranges(2)[1]


def test_the_layers_for_a_range_are_those_that_overlap_it() -> None:
    covers = {held: (LayerInfo("t", held, 1, 2, "upserts", str(held), 1, 1, ""),) for held in shard_ranges(2)}
    assert [[layer.path for layer, _ in layer_ranges(covers, third)] for third in shard_ranges(3)] == [["0-7"], ["0-7", "8-f"], ["8-f"]]
    assert [part.both(shard_ranges(3)[1]) for _, part in layer_ranges(covers, shard_ranges(3)[1])] == [
        HashRange(shard_ranges(3)[1].lower, 1 << 63), HashRange(1 << 63, shard_ranges(3)[1].upper),
    ]  # fmt: skip


def test_a_layer_is_read_back_from_the_journal_with_its_range() -> None:
    layer = LayerInfo("t", shard_ranges(3)[1], 1, 2, "diffs", "p", 1, 1, "")
    assert LayerInfo.from_json(layer.to_json()) == layer
