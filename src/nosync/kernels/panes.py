"""panes: sliding windows share what they have in common.

A row is added once, to the *pane* of its key: the stretch of one slide that it falls into. A window is the sum of its panes, taken when it
closes. So an epoch costs its change once, not once for each window, and for each window that closes the panes it is made of.

A pane is known by the last window that it is part of, and begins with it. The upper bits of its hash are those of its key alone, so that
all panes of a key lie in one shard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.accumulate import Accumulation, collapse
from nosync.kernels.groups import Groups, concat, from_batch
from nosync.state.expiry import NEVER, Times, times
from nosync.state.layer import Layer, take_rows
from nosync.state.merge import newest_rows

PANE_BITS = 24
PANE = (1 << PANE_BITS) - 1
_KEY = np.uint64((1 << 64) - 1 - PANE)


@dataclass(frozen=True, slots=True)
class Panes:
    """Windows of `size` microseconds, one every `slide`; the window is key column `place`."""

    place: int
    size: int
    slide: int

    def ends(self, starts: Times, since: int | None, until: int) -> list[int]:
        """When windows end that hold any of the panes: after `since` and up to `until`, ascending."""
        steps = np.arange(1, self.size // self.slide + 1, dtype=np.int64) * self.slide
        ends = np.unique(np.unique(starts)[:, None] + steps)
        return [int(end) for end in ends if end <= until and (since is None or end > since)]


def closed(spec: Accumulation, panes: Panes, cover: Sequence[Layer], since: int | None, until: int | None) -> Groups | None:
    """The windows that close after `since` and up to `until`, as the state has them; None where there are none."""
    if until is None or (since is not None and since >= until):
        return None
    found = _panes_between(panes, cover, since, until)
    if found is None:
        return None
    groups = from_batch(found, len(spec.keys), spec.best)
    starts = times(groups.keys[panes.place], 0)
    window = groups.keys.pop(panes.place).type
    told = []
    for end in panes.ends(starts, since, until):
        mine = groups.take(np.flatnonzero((starts >= end - panes.size) & (starts < end)))
        mine.hashes = mine.hashes & _KEY  # all panes of a key as one
        whole = collapse(spec, mine)
        whole.hashes = whole.hashes | np.uint64(end // panes.slide & PANE)
        whole.keys.insert(panes.place, _windows(window, end - panes.size, end, len(whole)))
        told.append(whole)
    return _alive(concat(told)) if told else None


def _panes_between(panes: Panes, cover: Sequence[Layer], since: int | None, until: int) -> pa.RecordBatch | None:
    """The panes of windows that close. One column of the state is looked at; what is read besides is what closes."""
    pieces = []
    for layer in cover:
        for number, block in enumerate(layer.blocks):
            column = layer.column(number, f"k{panes.place}")
            starts = times(column, 0) if column is not None else np.zeros(0, np.int64)
            chosen = (starts <= until - panes.slide) & (starts < NEVER - panes.size)
            if since is not None:
                chosen &= starts > since - panes.size
            if chosen.any():
                pieces.append(take_rows(block, np.flatnonzero(chosen)))
    found = newest_rows(pieces) if pieces else None
    return found if found is not None and found.num_rows else None


def _windows(type: pa.DataType, start: int, end: int, count: int) -> pa.Array:
    fields = [pa.array(np.full(count, time, np.int64)).cast(field.type) for time, field in zip((start, end), type, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=list(type))


def _alive(groups: Groups) -> Groups:
    alive = groups.n > 0
    return groups if alive.all() else groups.take(np.flatnonzero(alive))


def without_calls(change: Groups) -> Groups:
    """The change without groups of rows that count for nothing."""
    real = change.n != 0
    for column in change.additive.values():
        real |= column != 0
    return change if real.all() else change.take(np.flatnonzero(real))
