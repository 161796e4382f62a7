"""fold: the rows of an epoch by key, in an order that depends on them alone, and what is remembered of each key.

The function that is called with them stands elsewhere. Work is in proportion to the change: only touched keys are looked up and written.
State is kept as upserts, columns `value0`, `value1`...; a key whose state is given up leaves a tombstone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels.groups import Groups, Int64s, Uint64s, sort_by_key
from nosync.kernels.order import codes
from nosync.state.canonical import canonical_bytes, rows_equal
from nosync.state.layer import Layer
from nosync.state.search import lookup


@dataclass(frozen=True, slots=True)
class Touched:
    """Keys that have rows, ascending by hash. `order` are indices of rows, each key's from `starts` to `ends`; `weights` their diffs."""

    hashes: Uint64s
    keys: list[pa.Array]
    order: Int64s
    starts: Int64s
    ends: Int64s
    weights: Int64s


@dataclass(frozen=True, slots=True)
class States:
    """What is remembered of some keys: `alive` says of which anything is, `values` what."""

    alive: np.ndarray
    values: list[pa.Array]


def touch(
    hashes: Uint64s, keys: Sequence[pa.Array], rows: Sequence[pa.Array], order_by: Sequence[pa.Array], diffs: Int64s, net: bool
) -> Touched:
    """Rows of each key by `order_by` (nulls first), then in canonical order. `net`: equal rows become one with the sum of their diffs;
    else rows are only added, and each comes as often as its diff says.
    """
    grouped, starts = sort_by_key(hashes, keys)
    group = np.empty(len(grouped), np.int64)
    group[grouped] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(grouped))))
    content = pc.rank(canonical_bytes(rows, len(hashes)), tiebreaker="dense").to_numpy()
    wanted = [part for column in order_by for part in (column.is_valid().to_numpy(zero_copy_only=False), _codes(column))]
    order = np.lexsort([content, *wanted[::-1], group])
    if net:
        order, weights = _net(order, group, content, diffs)
    else:
        order = np.repeat(order, diffs[order])
        weights = np.ones(len(order), np.int64)
    first = np.flatnonzero(np.concatenate((np.ones(min(len(order), 1), bool), group[order][1:] != group[order][:-1])))
    where = order[first]
    ends = np.append(first[1:], len(order))[: len(first)]
    return Touched(hashes[where], [key.take(pa.array(where)) for key in keys], order, first, ends, weights)


def _codes(column: pa.Array) -> Int64s:
    found = codes(column)
    return np.where(column.is_valid().to_numpy(zero_copy_only=False), found, 0)


def _net(order: Int64s, group: Int64s, content: Int64s, diffs: Int64s) -> tuple[Int64s, Int64s]:
    """Equal rows, which are neighbours, as one."""
    if not len(order):
        return order, diffs[order]
    fresh = (group[order][1:] != group[order][:-1]) | (content[order][1:] != content[order][:-1])
    starts = np.flatnonzero(np.insert(fresh, 0, True))
    sums = np.add.reduceat(diffs[order], starts)
    kept = np.flatnonzero(sums)
    return order[starts[kept]], sums[kept]


def previous_states(cover: Sequence[Layer], touched: Touched, types: Sequence[pa.DataType]) -> States:
    """The states of the touched keys before this epoch."""
    found = lookup(cover, touched.hashes, touched.keys)
    return States(found.additive("n") > 0, [found.best(f"value{i}", type) for i, type in enumerate(types)])


def state_layer(touched: Touched, before: States, after: States) -> pa.RecordBatch:
    """What to keep: states that are new, other than before, or given up."""
    same = rows_equal(before.values, after.values, len(after.alive))
    changed = np.flatnonzero((before.alive != after.alive) | (after.alive & ~same))
    values = {f"value{i}": column for i, column in enumerate(after.values)}
    return Groups(touched.hashes, touched.keys, after.alive.astype(np.int64), {}, values).take(changed).to_batch()
