"""Covers: every kept epoch is read from layers that hold each of its updates exactly once."""

from itertools import pairwise

import numpy as np
import pytest

from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges
from nosync.state.cover import cover, layer_ranges
from nosync.state.leaves import leaf_layers, within


def layer(lower: int, upper: int) -> LayerInfo:
    return LayerInfo("totals", ALL_HASHES, lower, upper, "upserts", f"{lower}-{upper}", 1, 1, "")


def ranges(layers: tuple[LayerInfo, ...]) -> list[tuple[int, int]]:
    return [(layer.lower, layer.upper) for layer in layers]


def test_single_epochs_are_read_newest_first() -> None:
    assert ranges(cover([layer(1, 2), layer(3, 4), layer(2, 3)], at=3)) == [(3, 4), (2, 3), (1, 2)]


def test_layers_after_the_epoch_are_left_out() -> None:
    assert ranges(cover([layer(1, 2), layer(2, 3), layer(3, 4)], at=2)) == [(2, 3), (1, 2)]


def test_a_merged_layer_replaces_its_inputs_where_it_ends_in_time() -> None:
    trace = [layer(1, 2), layer(2, 3), layer(3, 4), layer(1, 4), layer(4, 5)]
    assert ranges(cover(trace, at=4)) == [(4, 5), (1, 4)]
    assert ranges(cover(trace, at=3)) == [(1, 4)]
    assert ranges(cover(trace, at=2)) == [(2, 3), (1, 2)]


def test_epochs_without_change_are_skipped() -> None:
    assert ranges(cover([layer(2, 3), layer(5, 6), layer(2, 6)], at=9)) == [(2, 6)]
    assert ranges(cover([layer(2, 3), layer(5, 6), layer(2, 6)], at=4)) == [(2, 3)]


def test_nothing_before_the_first_layer() -> None:
    assert cover([layer(4, 5)], at=3) == () and cover([], at=3) == ()


@pytest.mark.parametrize("seed", range(200))
def test_any_history_of_merges_holds_every_changed_epoch_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    changed = [epoch for epoch in range(1, 40) if random.random() < 0.7]
    trace: list[LayerInfo] = []
    for epoch in changed:
        trace.append(layer(epoch, epoch + 1))
        newest = cover(trace, epoch)
        if len(newest) > 2 and random.random() < 0.5:
            start = int(random.integers(0, len(newest) - 1))
            inputs = newest[start : start + int(random.integers(2, 5))]
            trace.append(layer(inputs[-1].lower, inputs[0].upper))
    shuffled = [trace[i] for i in random.permutation(len(trace))]
    for at in range(0, 41):
        chosen = cover(shuffled, at)
        held = [epoch for epoch in changed for part in chosen if part.lower <= epoch < part.upper]
        assert held == [epoch for epoch in changed if epoch <= at]
        assert all(older.upper <= newer.lower for newer, older in pairwise(chosen))


def test_layers_are_asked_that_hold_some_of_the_hashes() -> None:
    halves, quarters = shard_ranges(2), shard_ranges(4)
    covers = {halves[0]: (layer(2, 3), layer(1, 2)), halves[1]: (layer(4, 5),)}
    asked = {wanted: ranges(tuple(layer for layer, _ in layer_ranges(covers, wanted))) for wanted in (quarters[1], quarters[2], ALL_HASHES)}
    assert asked == {quarters[1]: [(2, 3), (1, 2)], quarters[2]: [(4, 5)], ALL_HASHES: [(4, 5), (2, 3), (1, 2)]}


def test_a_leaf_contains_no_other_layer() -> None:
    spans = [(1, 2), (2, 3), (3, 5), (5, 6), (1, 3), (2, 6), (6, 9), (6, 7), (8, 9), (7, 10), (11, 14), (12, 15)]
    found = leaf_layers([layer(*span) for span in spans])
    assert ranges(tuple(found)) == [(1, 2), (2, 3), (3, 5), (5, 6), (6, 7), (8, 9), (11, 14), (12, 15)]
    assert ranges(tuple(leaf_layers([layer(2, 4), layer(1, 4), layer(2, 5)]))) == [(2, 4)]
    assert len(leaf_layers([layer(1, 2), layer(1, 2)])) == 1 and leaf_layers([]) == []


def test_epochs_lie_within_those_of_a_layer_that_begins_and_ends_with_them_at_the_latest() -> None:
    assert [within(layer(2, 4), layer(*span)) for span in ((2, 4), (1, 5), (3, 4), (2, 3))] == [True, True, False, False]
