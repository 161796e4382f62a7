"""top: of groups of any size, hand out only the rows among which the first k are.

The rows of a group are kept as diffs whose `_row` is a *code*: 64 bits that never contradict the query's order, though different rows may
have the same ones (`order_codes`). `top` adds a change and hands out, for each touched group, the rows up to the code at which k rows are
alive, all rows of that code included. Whoever recomputes decides exactly; here nothing is ranked.

Promise: an epoch costs the change and, per touched group and layer, about k rows and a binary search. A change behind the k-th row touches
nothing. Where a row among the first k goes, the next ones come up from the layers. Where many rows share a code, all of them are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nosync.kernels.order import ordered_words
from nosync.kernels.regroup import Gathered, group_numbers, stack
from nosync.model.columns import COUNT, HASH, ROW
from nosync.state.first_rows import Run, run_in_memory, run_of
from nosync.state.layer import Hashes, Index, Layer
from nosync.state.merge import concat, consolidate

By = Literal["row_number", "rank", "dense_rank"]
LAST = np.uint64(2**64 - 1)
FIRST_LOOK, GROWTH = 64, 4


@dataclass(frozen=True, slots=True)
class Order:
    """How the query sorts by one value."""

    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows of each group are wanted: `row_number`, `rank` or `dense_rank` at most `k`, in the order of these values."""

    k: int
    by: By = "row_number"
    orders: tuple[Order, ...] = (Order(),)


def order_codes(limit: Limit, values: Sequence[pa.Array]) -> npt.NDArray[np.uint64]:
    """Where rows stand in the order of the limit, by the values that the query orders by first.

    A value takes a bit that says whether it is null, and its own bits; what comes after it counts only where all of these fit.
    """
    found, left = np.zeros(len(values[0]), np.uint64), 64
    for order, column in zip(limit.orders, values, strict=True):
        words, width = ordered_words(column)
        if order.descending:
            words = ~words >> np.uint64(64 - width) << np.uint64(64 - width)
        null = column.is_null().to_numpy(zero_copy_only=False)
        left -= 1
        found |= (null != order.nulls_first).astype(np.uint64) << np.uint64(left)
        if left:
            found |= np.where(null, np.uint64(0), words) >> np.uint64(64 - left)
        left -= width
        if left <= 0:
            break
    return found


def top(cover: Sequence[Layer], change: pa.RecordBatch, keys: int, limit: Limit) -> Gathered:
    """As `gather`, but only what the limit asks for. Each touched group has a ghost. `change` has codes for `_row`."""
    layer = consolidate(change)
    if layer.num_rows == 0:
        return Gathered(layer, layer, np.zeros(0, bool))
    now = _beginnings(cover, layer, keys, limit)
    group, changed, groups = group_numbers(now, layer, keys)
    ends = _ends(now, group, groups, limit)
    touched = np.zeros(groups, bool)
    touched[changed[_rows(layer) <= ends[changed]]] = True
    counts = np.maximum(_counts(now), 0)
    counts = np.minimum(counts, limit.k) if limit.by == "row_number" else counts
    repeated = np.repeat(np.arange(now.num_rows), np.where(touched[group] & (_rows(now) <= ends[group]), counts, 0))
    known, first = np.unique(changed, return_index=True)
    ghosts = first[touched[known]]
    rows = stack([now.take(pa.array(repeated)), layer.take(pa.array(ghosts))])
    return Gathered(layer, rows, np.concatenate((np.zeros(len(repeated), bool), np.ones(len(ghosts), bool))))


def _beginnings(cover: Sequence[Layer], change: pa.RecordBatch, keys: int, limit: Limit) -> pa.RecordBatch:
    """The first rows of each hash after the change, in canonical order: enough for the limit, or all there are."""
    hashes: Hashes = np.unique(change.column(HASH).to_numpy())
    runs = [run_in_memory(change, hashes), *(run_of(layer, hashes) for layer in cover)]
    pending: Index = np.arange(len(hashes))
    size, found = max(FIRST_LOOK, 2 * limit.k), []
    while len(pending):
        rows, bounded = _look(runs, hashes, pending, size, change.schema)
        short = _short(rows, change, hashes, pending, keys, limit) & bounded
        found.append(rows.filter(pa.array(~short[np.searchsorted(hashes[pending], rows.column(HASH).to_numpy())])))
        pending, size = pending[short], size * GROWTH
    return found[0] if len(found) == 1 else consolidate(stack(found))


def _look(runs: Sequence[Run], hashes: Hashes, pending: Index, size: int, schema: pa.Schema) -> tuple[pa.RecordBatch, np.ndarray]:
    """The rows of each hash up to the code that is known whole, and for which hashes more lie behind."""
    bounds, bounded = np.full(len(pending), LAST), np.zeros(len(pending), bool)
    pieces: list[pa.RecordBatch] = []
    for run in runs:
        taken, cut = run.take(pending, size)
        pieces += taken
        bounds[cut.hashes] = np.minimum(bounds[cut.hashes], cut.rows)
        bounded[cut.hashes] = True
    rows = consolidate(concat(pieces, schema, "diffs"), runs=True)
    at = np.searchsorted(hashes[pending], rows.column(HASH).to_numpy())
    return rows.filter(pa.array(~bounded[at] | (_rows(rows) < bounds[at]))), bounded


def _short(rows: pa.RecordBatch, change: pa.RecordBatch, hashes: Hashes, pending: Index, keys: int, limit: Limit) -> np.ndarray:
    """For which of the pending hashes some changed group has not yet enough rows."""
    mine = change.filter(pa.array(np.isin(change.column(HASH).to_numpy(), hashes[pending])))
    group, changed, groups = group_numbers(rows, mine, keys)
    wanting = _ends(rows, group, groups, limit)[changed] == LAST
    short = np.zeros(len(pending), bool)
    short[np.searchsorted(hashes[pending], mine.column(HASH).to_numpy()[wanting])] = True
    return short


def _ends(rows: pa.RecordBatch, group: Index, groups: int, limit: Limit) -> Hashes:
    """The code of the k-th living row of each group, or of its k-th different code; the last of all where there are fewer."""
    ends = np.full(groups, LAST)
    alive = np.flatnonzero(_counts(rows) > 0)
    order = alive[np.argsort(group[alive], kind="stable")]
    group, code, count = group[order], _rows(rows)[order], _counts(rows)[order]
    if limit.by == "dense_rank":
        count = np.insert((group[1:] != group[:-1]) | (code[1:] != code[:-1]), 0, True)[: len(order)].astype(np.int64)
    passed = np.cumsum(count)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    before = np.repeat(passed[starts] - count[starts], np.diff(starts, append=len(order)))
    enough = np.flatnonzero(passed - before >= limit.k)
    reached, first = np.unique(group[enough], return_index=True)
    ends[reached] = code[enough[first]]
    return ends


def _rows(batch: pa.RecordBatch) -> Hashes:
    rows: Hashes = batch.column(ROW).to_numpy()
    return rows


def _counts(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    counts: npt.NDArray[np.int64] = batch.column(COUNT).to_numpy()
    return counts
