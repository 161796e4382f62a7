"""The first rows of hashes in sorted runs, a few at a time.

Promise: taking the first `size` rows of each hash costs a binary search and those rows, however many more there are. Called by
kernels whose diffs lie in an order that matters beyond the hash: `_row` then is not a hash of the row but a place in that order.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nosync.model.columns import HASH, ROW
from nosync.state.layer import Hashes, Index, Layer, take_rows


@dataclass(frozen=True, slots=True)
class Run:
    """Rows in the order of `_hash` and `_row`, and where the rows of the asked hashes begin and end in it."""

    block: Callable[[int], pa.RecordBatch]
    offsets: Index
    begin: Index
    end: Index

    def take(self, chosen: Index, size: int) -> tuple[list[pa.RecordBatch], "Cut"]:
        """The first `size` rows of the chosen hashes (by their numbers, ascending), and where that left rows behind."""
        begin, end = self.begin[chosen], self.end[chosen]
        upper = np.minimum(end, begin + size)
        left = np.flatnonzero(upper < end)
        return self._between(begin, upper), Cut(left, self._rows_at(upper[left] - 1))

    def _between(self, begin: Index, end: Index) -> list[pa.RecordBatch]:
        lengths = end - begin
        skipped = np.cumsum(lengths) - lengths
        positions = np.repeat(begin - skipped, lengths) + np.arange(int(lengths.sum()))
        return [take_rows(self.block(block), rows) for block, rows in self._by_block(positions)]

    def _rows_at(self, positions: Index) -> Hashes:
        found = [self.block(block).column(ROW).to_numpy()[rows] for block, rows in self._by_block(positions)]
        return np.concatenate(found) if found else np.zeros(0, np.uint64)

    def _by_block(self, positions: Index) -> list[tuple[int, Index]]:
        """Ascending positions as rows of blocks."""
        cuts = np.searchsorted(positions, self.offsets)
        spans = zip(range(len(cuts) - 1), cuts[:-1], cuts[1:], strict=True)
        return [(block, positions[low:high] - self.offsets[block]) for block, low, high in spans if low < high]


@dataclass(frozen=True, slots=True)
class Cut:
    """Of which of the chosen hashes rows are left behind, and the `_row` of the last that was taken: none left behind is less."""

    hashes: Index
    rows: Hashes


def run_of(layer: Layer, hashes: Hashes) -> Run:
    """The layer, asked for hashes that ascend."""
    begin, end = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
    offsets = np.cumsum([0, *(block.num_rows for block in layer.blocks)])
    first = np.searchsorted(layer.lasts, hashes, side="left")  # the first block that can hold the hash
    last = np.searchsorted(layer.firsts, hashes, side="right") - 1
    there = first <= last
    for block in np.unique(np.concatenate((first[there], last[there]))).tolist():
        _search(layer.hashes(block), hashes, np.flatnonzero(there & (first == block)), begin, int(offsets[block]), "left")
        _search(layer.hashes(block), hashes, np.flatnonzero(there & (last == block)), end, int(offsets[block]), "right")

    def verified(block: int) -> pa.RecordBatch:
        layer.hashes(block)
        return layer.blocks[block]

    return Run(verified, offsets, begin, end)


def run_in_memory(batch: pa.RecordBatch, hashes: Hashes) -> Run:
    """Consolidated diffs that are no layer yet."""
    own: Hashes = batch.column(HASH).to_numpy()
    offsets = np.array([0, batch.num_rows])
    return Run(lambda block: batch, offsets, np.searchsorted(own, hashes, side="left"), np.searchsorted(own, hashes, side="right"))


def _search(own: Hashes, hashes: Hashes, wanted: Index, found: npt.NDArray[np.int64], offset: int, side: str) -> None:
    found[wanted] = offset + np.searchsorted(own, hashes[wanted], side=side)  # type: ignore[call-overload]
