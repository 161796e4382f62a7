"""regroup: keep the rows of every group, and for the touched groups let somebody else recompute the result.

`gather` adds the change to the kept rows and hands out all rows of each touched group; `replace_results` takes the recomputed results and
emits their difference to the previous ones. In between stands whatever the query says. Work is in proportion to the touched groups. A group
that has become empty is announced by a *ghost*: one of the changed rows, marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.groups import sort_by_key
from nosync.model.columns import COUNT, HASH
from nosync.state.expiry import Expired
from nosync.state.layer import Layer
from nosync.state.merge import consolidate
from nosync.state.search import rows_of


@dataclass(frozen=True, slots=True)
class Gathered:
    """`layer`: the change to keep. `rows`: all rows of touched groups, once per occurrence; `ghosts` marks announcements."""

    layer: pa.RecordBatch
    rows: pa.RecordBatch
    ghosts: np.ndarray


def gather(cover: Sequence[Layer], change: pa.RecordBatch, keys: int, announced: bool = False) -> Gathered:
    """`change` has the form of a diffs layer, unsorted; its payload begins with the key columns.

    With `announced` each touched group has a ghost, not only those that have become empty.
    """
    layer = consolidate(change)
    if layer.num_rows == 0:
        return Gathered(layer, layer, np.zeros(0, bool))
    old = rows_of(cover, np.unique(layer.column(HASH).to_numpy()))
    both = layer if old is None else stack([layer, old.select(layer.schema.names)])
    now = consolidate(both)
    counts = np.maximum(now.column(COUNT).to_numpy(), 0)
    group, touched, groups = group_numbers(now, layer, keys)
    alive = np.bincount(group, weights=counts, minlength=groups) > 0
    wanted = np.zeros(groups, bool)
    wanted[touched] = True
    repeated = np.repeat(np.arange(now.num_rows), np.where(wanted[group], counts, 0))
    gone, first = np.unique(touched, return_index=True)
    last_words = first if announced else first[~alive[gone]]
    rows = stack([now.take(pa.array(repeated)), layer.take(pa.array(last_words))])
    ghosts = np.concatenate((np.zeros(len(repeated), bool), np.ones(len(last_words), bool)))
    return Gathered(layer, rows, ghosts)


def replace_results(
    cover: Sequence[Layer], results: pa.RecordBatch, ghosts: np.ndarray, keys: int, closed: Expired | None = None
) -> pa.RecordBatch:
    """The difference between the new results of the touched groups and the previous ones, in the form of a diffs layer.

    `results` holds one or more rows for each touched group that is alive, and ghosts for those that are gone.
    """
    old = rows_of(cover, np.unique(results.column(HASH).to_numpy()))
    new = results.filter(pa.array(~ghosts))
    if closed is not None:
        old = old if old is None else old.filter(pa.array(closed.living(old)))
        new = new.filter(pa.array(closed.living(new)))
    if old is None or old.num_rows == 0:
        return consolidate(new)
    old = old.select(new.schema.names)
    if keys:
        group, touched, groups = group_numbers(old, results, keys)
        wanted = np.zeros(groups, bool)
        wanted[touched] = True
        old = old.filter(pa.array(wanted[group]))
    minus = pa.array(-old.column(COUNT).to_numpy())
    old = old.set_column(old.schema.get_field_index(COUNT), old.schema.field(COUNT), minus)
    return consolidate(stack([new, old]))


def stack(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all, one after the other."""
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(batches[0].num_columns)], schema=batches[0].schema
    )


def group_numbers(left: pa.RecordBatch, right: pa.RecordBatch, keys: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers for the groups of both, equal where hash and key are equal, and how many groups there are."""
    both = stack([left.select([HASH, *_keys(keys)]), right.select([HASH, *_keys(keys)])])
    order, starts = sort_by_key(both.column(HASH).to_numpy(), [both.column(name) for name in _keys(keys)])
    number = np.empty(len(order), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    return number[: left.num_rows], number[left.num_rows :], len(starts)


def _keys(keys: int) -> list[str]:
    return [f"k{i}" for i in range(keys)]
