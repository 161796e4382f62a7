"""The spine: covers stay short, rows are rewritten seldom, and a huge base is left in peace."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from nosync.model.errors import Internal
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.state.spine import longest_cover, plan_merge, space_amplification


def layer(lower: int, upper: int, rows: int) -> LayerInfo:
    return LayerInfo("totals", ALL_HASHES, lower, upper, "upserts", f"{lower}-{upper}", rows, rows * 10, "")


@dataclass
class Trace:
    """A newest cover under merging, with what merging cost. `universe` bounds a merged layer, as a set of keys does."""

    floor_rows: int = 1
    universe: int = 1 << 60
    cover: list[LayerInfo] = field(default_factory=list)
    written: int = 0
    rewritten: int = 0
    merges: int = 0

    def append(self, epoch: int, rows: int) -> None:
        self.cover.insert(0, layer(epoch, epoch + 1, rows))
        self.written += rows
        while (inputs := plan_merge(self.cover, floor_rows=self.floor_rows)) is not None:
            self._replace(inputs)
        assert len(self.cover) <= longest_cover(max(part.rows for part in self.cover), floor_rows=self.floor_rows)

    def _replace(self, inputs: tuple[LayerInfo, ...]) -> None:
        assert 2 <= len(inputs) <= 8
        start = self.cover.index(inputs[0])
        assert tuple(self.cover[start : start + len(inputs)]) == inputs
        rows = sum(part.rows for part in inputs)
        self.cover[start : start + len(inputs)] = [layer(inputs[-1].lower, inputs[0].upper, min(rows, self.universe))]
        self.rewritten += rows
        self.merges += 1


def sizes(shape: str, epochs: int) -> Iterator[int]:
    random = np.random.default_rng(7)
    for epoch in range(epochs):
        yield {
            "equal": 1000,
            "one row": 1,
            "uniform": int(random.integers(1, 2000)),
            "heavy tail": int(min(1e6, 10 * (random.pareto(0.7) + 1))),
            "alternating": 50_000 if epoch % 2 else 1,
            "big then three small": 1 if epoch % 4 else 50_000,
            "growing": epoch + 1,
            "shrinking": epochs - epoch,
            "ruler": 4 ** (((epoch + 1) & -(epoch + 1)).bit_length() - 1),
        }[shape]


SHAPES = ["equal", "one row", "uniform", "heavy tail", "alternating", "big then three small", "growing", "shrinking", "ruler"]


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_epochs_keep_the_cover_and_the_rewrites_logarithmic(shape: str) -> None:
    trace = Trace()
    for epoch, rows in enumerate(sizes(shape, 10_000), start=1):
        trace.append(epoch, rows)
    tiers = np.log(trace.written) / np.log(4) + 1
    assert trace.rewritten / trace.written <= 2 * tiers
    assert trace.merges <= 10_000 / 2


def test_whoever_is_far_behind_merges_many_small_layers_at_once_and_few_large_ones() -> None:
    def behind(rows: int) -> list[LayerInfo]:
        return [layer(epoch, epoch + 1, rows) for epoch in range(50, 0, -1)]

    assert [len(plan_merge(behind(rows)) or ()) for rows in (10, 5_000)] == [50, 8]


def test_equal_epochs_are_rewritten_once_per_tier() -> None:
    trace = Trace()
    for epoch in range(1, 4**6 + 1):
        trace.append(epoch, 1)
    assert trace.rewritten / trace.written == 6 and len(trace.cover) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_small_layers_share_a_tier_so_covers_get_shorter_still(shape: str) -> None:
    trace = Trace(floor_rows=1024)
    for epoch, rows in enumerate(sizes(shape, 10_000), start=1):
        trace.append(epoch, rows)
    tiers = np.log(trace.written) / np.log(4) + 1
    assert trace.rewritten <= 2 * tiers * trace.written + trace.merges * 8 * 4096


@pytest.mark.parametrize("epoch_rows", [1, 100, 1000])
def test_a_huge_base_is_not_rewritten_by_small_epochs(epoch_rows: int) -> None:
    trace = Trace(floor_rows=1024)
    base = layer(0, 1, 5_000_000)
    trace.cover = [base]
    for epoch in range(1, 1001):
        trace.append(epoch, epoch_rows)
        assert trace.cover[-1] == base


def test_updates_of_a_fixed_set_of_keys_rewrite_the_base_in_proportion_to_them() -> None:
    trace = Trace(floor_rows=1024, universe=1_000_000)
    trace.cover = [layer(0, 1, 1_000_000)]
    for epoch in range(1, 10_001):
        trace.append(epoch, 10_000)
    assert trace.rewritten / trace.written < 12


def test_empty_layers_are_merged_like_small_ones() -> None:
    trace = Trace(floor_rows=1024)
    for epoch in range(1, 200):
        trace.append(epoch, 0)
    assert len(trace.cover) <= 3


def test_a_short_cover_is_left_alone() -> None:
    assert plan_merge([]) is None
    assert plan_merge([layer(3, 4, 10), layer(2, 3, 10), layer(1, 2, 10)]) is None


def test_layers_out_of_order_are_refused() -> None:
    with pytest.raises(Internal, match="not newest first"):
        plan_merge([layer(1, 2, 1), layer(2, 3, 1)])


def test_space_amplification_counts_what_history_keeps() -> None:
    inputs, merged = [layer(1, 2, 10), layer(2, 3, 10)], layer(1, 3, 10)
    assert space_amplification([*inputs, merged], [merged]) == 3.0
    assert space_amplification([], []) == 1.0
