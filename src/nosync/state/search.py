"""Finding keys in a cover.

Promise: a batch of sorted needles costs one pass of binary search per layer, newest first, for what is still unfound; values are
gathered only for the columns asked for. Equal hashes are confirmed on the key: collisions cost time, not rightness. Where layers have
Bloom filters, most needles that are not there are not searched for. Called by the kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nosync.model.errors import Internal
from nosync.state.bloom import Words, masks_of, passes
from nosync.state.layer import Hashes, Index, Layer, bits, equal_rows_at, take, take_rows
from nosync.state.merge import concat, consolidate, union_schema

SAMPLE, MANY = 64, 4096  # of many needles, one in so many says whether asking the Bloom filter pays
Pairs = tuple[Index, Index]  # positions of needles, rows of a block


@dataclass(frozen=True, slots=True)
class _Hit:
    layer: Layer
    block: int
    needles: Index
    rows: Index


@dataclass(frozen=True, slots=True)
class BloomUse:
    """Questions put to Bloom filters (a needle may be asked of several layers), those that they let pass, and needles found in the end."""

    asked: int = 0
    passed: int = 0
    found: int = 0


class Found:
    """Where each needle's newest value lies. `mask` marks the needles that have one, be it a tombstone."""

    def __init__(self, needles: int) -> None:
        self.mask: npt.NDArray[np.bool_] = np.zeros(needles, dtype=np.bool_)
        self._hits: list[_Hit] = []
        self.asked = 0
        self.passed = 0

    @property
    def bloom(self) -> "BloomUse":
        """What the Bloom filters of the layers did for this lookup."""
        return BloomUse(self.asked, self.passed, int(np.count_nonzero(self.mask)) if self.asked else 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that some layer with a hit carries; any other is 0 or null for all needles."""
        return tuple(dict.fromkeys(name for hit in self._hits for name in hit.layer.schema.names))

    def additive(self, name: str) -> npt.NDArray[np.int64]:
        """The sums, 0 for needles without a value."""
        sums = np.zeros(len(self.mask), dtype=np.int64)
        for hit in self._hits:
            column = hit.layer.column(hit.block, name)
            if column is not None:
                values = bits(column)
                if values is None:
                    raise Internal(f'additive column "{name}" of layer "{hit.layer.info.path}" holds nulls')
                sums[hit.needles] = values[hit.rows]
        return sums

    def best(self, name: str, type: pa.DataType) -> pa.Array:
        """The chosen values, null for needles without one."""
        pieces = [pa.nulls(1, type)]
        position = np.zeros(len(self.mask), dtype=np.int64)
        filled = 1
        for hit in self._hits:
            column = hit.layer.column(hit.block, name)
            if column is not None:
                piece = take(column, hit.rows)
                pieces.append(piece if piece.type == type else piece.cast(type))
                position[hit.needles] = np.arange(filled, filled + len(hit.rows))
                filled += len(hit.rows)
        return take(pa.concat_arrays(pieces), position) if filled > 1 else pa.nulls(len(self.mask), type)

    def add(self, layer: Layer, block: int, needles: Index, rows: Index) -> None:
        """Note where needles were found; later calls are for older layers and other needles."""
        if len(needles):
            self.mask[needles] = True
            self._hits.append(_Hit(layer, block, needles, rows))


def lookup(cover: Sequence[Layer], hashes: Hashes, keys: Sequence[pa.Array]) -> Found:
    """The newest value of each key in a cover of upserts, newest layer first. `hashes` ascend; `keys` are the key columns, if any."""
    hashes = np.ascontiguousarray(hashes, dtype=np.uint64)
    found = Found(len(hashes))
    distinct = not bool((hashes[1:] == hashes[:-1]).any())
    wanted: Index = np.arange(len(hashes))
    masks = masks_of(hashes) if any(layer.with_bloom for layer in cover) else None
    for layer in cover:
        unfound = ~found.mask[wanted]
        if 2 * np.count_nonzero(unfound) <= len(wanted):  # shrinking costs a copy, so not for a few
            wanted, hashes = wanted[unfound], hashes[unfound]
        lows, highs = np.searchsorted(hashes, layer.firsts, side="left"), np.searchsorted(hashes, layer.lasts, side="right")
        for block in np.flatnonzero(lows < highs).tolist():
            needles, positions = hashes[lows[block] : highs[block]], wanted[lows[block] : highs[block]]
            if layer.with_bloom and masks is not None:
                needles, positions = _sift(found, layer, block, needles, positions, masks)
            if len(needles):
                _search_block(found, layer, block, needles, positions, keys, distinct)
    return found


def _sift(found: Found, layer: Layer, block: int, needles: Hashes, positions: Index, masks: Words) -> tuple[Hashes, Index]:
    """The needles that the block may have; all where few would be kept back, and where the block is searched for in them instead."""
    words, first, last = layer.bloom(block)
    if 4 * layer.blocks[block].num_rows < len(needles):
        return needles, positions
    if len(needles) >= MANY:
        some = passes(words, needles[::SAMPLE], masks[positions[::SAMPLE]], first, last)
        if 2 * np.count_nonzero(some) > len(some):
            return needles, positions
    chosen = np.flatnonzero(passes(words, needles, masks[positions], first, last))
    found.asked += len(needles)
    found.passed += len(chosen)
    return needles[chosen], positions[chosen]


def rows_of(cover: Sequence[Layer], hashes: Hashes) -> pa.RecordBatch | None:
    """All rows with these hashes in a cover of diffs, summed over its layers, in canonical order; None when nothing remains.

    `hashes` ascend and are distinct.
    """
    hashes = np.ascontiguousarray(hashes, dtype=np.uint64)
    pieces = []
    for layer in cover:
        lows, highs = np.searchsorted(hashes, layer.firsts, side="left"), np.searchsorted(hashes, layer.lasts, side="right")
        for block in np.flatnonzero(lows < highs).tolist():
            rows = _rows_with(layer.hashes(block), hashes[lows[block] : highs[block]])
            if len(rows):
                pieces.append(take_rows(layer.blocks[block], rows))
    if not pieces:
        return None
    schema = union_schema([piece.schema for piece in pieces], "diffs")
    batch = consolidate(concat(pieces, schema, "diffs"), runs=True)
    return batch if batch.num_rows else None


def rows_between(cover: Sequence[Layer], lowest: Hashes, highest: Hashes) -> pa.RecordBatch | None:
    """All rows whose hashes lie in one of the ranges, both ends included, summed over the layers of a cover of diffs; None when nothing
    remains. The ranges ascend and do not overlap.
    """
    pieces = []
    for layer in cover:
        for block, batch in enumerate(layer.blocks):
            hashes = layer.hashes(block)
            starts = np.searchsorted(hashes, lowest, side="left")
            lengths = np.maximum(np.searchsorted(hashes, highest, side="right") - starts, 0)
            if total := int(lengths.sum()):
                skipped = np.cumsum(lengths) - lengths
                pieces.append(take_rows(batch, np.repeat(starts - skipped, lengths) + np.arange(total)))
    if not pieces:
        return None
    batch = consolidate(concat(pieces, union_schema([piece.schema for piece in pieces], "diffs"), "diffs"), runs=True)
    return batch if batch.num_rows else None


def _search_block(
    found: Found, layer: Layer, block: int, needles: Hashes, positions: Index, keys: Sequence[pa.Array], distinct: bool
) -> None:
    stored = [_key(layer, block, number) for number in range(len(keys))]
    hashes = layer.hashes(block)
    chained = not (distinct and 4 * len(hashes) < len(needles))
    at, rows = _forward(hashes, needles) if chained else _backward(hashes, needles)
    while len(at):
        unfound = ~found.mask[positions[at]]
        at, rows = at[unfound], rows[unfound]
        same = equal_rows_at(keys, positions[at], stored, rows)
        found.add(layer, block, positions[at[same]], rows[same])
        if not chained or same.all():
            return
        at, rows = _next_in_chain(hashes, needles, at[~same], rows[~same] + 1)


def _forward(hashes: Hashes, needles: Hashes) -> Pairs:
    """Each needle with the first row of its hash. Needles lie within the block's first and last hash."""
    rows = np.searchsorted(hashes, needles)
    at = np.flatnonzero(hashes[rows] == needles)
    return at, rows[at]


def _backward(hashes: Hashes, needles: Hashes) -> Pairs:
    """Each row with the needle of its hash: cheaper when rows are few, right when needles are distinct."""
    at = np.minimum(np.searchsorted(needles, hashes), len(needles) - 1)
    rows = np.flatnonzero(needles[at] == hashes)
    return at[rows], rows


def _next_in_chain(hashes: Hashes, needles: Hashes, at: Index, rows: Index) -> Pairs:
    """Needles whose hash also has a row one further; keys that collide lie next to one another."""
    within = rows < len(hashes)
    at, rows = at[within], rows[within]
    same = hashes[rows] == needles[at]
    return at[same], rows[same]


def _rows_with(hashes: Hashes, needles: Hashes) -> Index:
    """Rows whose hash is among the needles, ascending."""
    if 4 * len(hashes) < len(needles):
        return _backward(hashes, needles)[1]
    starts = np.searchsorted(hashes, needles, side="left")
    there = np.flatnonzero(hashes[np.minimum(starts, len(hashes) - 1)] == needles)  # often few: most keys have no partner
    starts = starts[there]
    lengths = np.searchsorted(hashes, needles[there], side="right") - starts
    skipped = np.cumsum(lengths) - lengths
    return np.repeat(starts - skipped, lengths) + np.arange(int(lengths.sum()))


def _key(layer: Layer, block: int, number: int) -> pa.Array:
    column = layer.column(block, f"k{number}")
    if column is None:
        raise Internal(f'layer "{layer.info.path}" has no key column k{number}')
    return column
