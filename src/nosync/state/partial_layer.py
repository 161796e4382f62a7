"""A layer as if it had been written with fewer hashes: after a rescaling, a shard reads its part of what wider ones have left.

Costs two binary searches: blocks are cut without a copy. Called by whoever reads a cover.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from nosync.model.hash_range import HashRange
from nosync.model.layers import LayerInfo
from nosync.state.bloom import Words
from nosync.state.cover import LayerRange
from nosync.state.layer import Layer


class PartialLayer(Layer):
    """The rows of a layer in a range of hashes. What is verified is the layer itself, block by block."""

    def __init__(self, whole: Layer, wanted: HashRange) -> None:
        cuts = [cut for block in range(len(whole.blocks)) if (cut := _cut(whole, block, wanted))]
        self.whole, self.numbers = whole, [block for block, _, _ in cuts]
        blocks = [whole.blocks[block].slice(low, high - low) for block, low, high in cuts]
        rows = sum(block.num_rows for block in blocks)
        bytes = whole.info.bytes * rows // max(1, whole.rows)
        super().__init__(replace(whole.info, range=wanted, rows=rows, bytes=bytes), whole.schema, blocks, [])
        self.stored, self.with_bloom = whole.stored, whole.with_bloom

    def doubt(self) -> None:
        self.whole.doubt()

    def bloom(self, block: int) -> tuple[Words, np.uint64, np.uint64]:
        """That of the whole block: it lets more pass than it need."""
        return self.whole.bloom(self.numbers[block])

    def _verify_doubted(self, block: int) -> None:
        self.whole._verify_doubted(self.numbers[block])


def _cut(layer: Layer, block: int, wanted: HashRange) -> tuple[int, int, int] | None:
    """Where in a block the range begins and ends; None where it has none of it."""
    first, last = int(layer.firsts[block]), int(layer.lasts[block])
    if last < wanted.lower or first >= wanted.upper:
        return None
    low, high = 0, layer.blocks[block].num_rows
    if first < wanted.lower:
        low = int(np.searchsorted(layer.hashes(block), np.uint64(wanted.lower), side="left"))
    if last >= wanted.upper:
        high = int(np.searchsorted(layer.hashes(block), np.uint64(wanted.upper - 1), side="right"))
    return (block, low, high) if low < high else None


def cut_to(layer: Layer, wanted: HashRange) -> Layer:
    """The layer's rows in the range; the layer itself where it has no others."""
    return layer if layer.info.range.within(wanted) else PartialLayer(layer, wanted)


def opened(ranges: Iterable[LayerRange], open: Callable[[LayerInfo], Layer]) -> list[Layer]:
    """The layers, each cut to its range, in their order."""
    return [cut_to(open(layer), wanted) for layer, wanted in ranges]
