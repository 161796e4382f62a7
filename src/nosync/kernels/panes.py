"""panes: sliding windows share what they have in common.

A row is added once, to the *pane* of its key: the stretch of one slide that it falls into. Of windows emitted once, each is the sum
of its panes, taken when it closes: an epoch costs its change once, not once for each window, and for each window that closes the panes it
is made of. Where they are emitted early, the panes of an epoch's change are spread over their windows: rows are not.

A pane is known by the last window that it is part of, and begins with it. The upper bits of its hash are those of its key alone, so that
all panes of a key lie in one shard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.accumulate import Accumulation, collapse
from nosync.kernels.groups import Groups, concat, from_batch
from nosync.state.expiry import NEVER, Times, micros_of
from nosync.state.layer import Layer, take_rows
from nosync.state.merge import newest_rows

PANE_BITS = 24
PANE = (1 << PANE_BITS) - 1
_KEY = np.uint64((1 << 64) - 1 - PANE)


@dataclass(frozen=True, slots=True)
class Panes:
    """Windows of `size` microseconds, one every `slide`; the window is the key column `index`."""

    index: int
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
    starts = micros_of(groups.keys[panes.index], 0)
    window = groups.keys.pop(panes.index).type
    closing = []
    for end in panes.ends(starts, since, until):
        mine = groups.take(np.flatnonzero((starts >= end - panes.size) & (starts < end)))
        mine.hashes = mine.hashes & _KEY  # all panes of a key as one
        whole = collapse(spec, mine)
        whole.hashes = whole.hashes | np.uint64(end // panes.slide & PANE)
        ends = np.full(len(whole), end, np.int64)
        whole.keys.insert(panes.index, _between(window, ends - panes.size, ends))
        closing.append(whole)
    return _alive(concat(closing)) if closing else None


def spread(spec: Accumulation, panes: Panes, change: Groups, until: int | None) -> Groups:
    """The change of every window that is open and that one of the changed panes is part of."""
    starts, window = micros_of(change.keys[panes.index], 0), change.keys[panes.index].type
    parts = []
    for before in range(0, panes.size, panes.slide):
        ends = starts - before + panes.size
        chosen = np.flatnonzero(ends > until) if until is not None else np.arange(len(ends))
        part, ends = change.take(chosen), ends[chosen]
        part.keys[panes.index] = _between(window, ends - panes.size, ends)
        part.hashes = (part.hashes & _KEY) | (ends // panes.slide & PANE).astype(np.uint64)
        parts.append(part)
    return collapse(spec, concat(parts))


def _panes_between(panes: Panes, cover: Sequence[Layer], since: int | None, until: int) -> pa.RecordBatch | None:
    """The panes of windows that close. One column of the state is looked at; what is read besides is what closes."""
    pieces = []
    for layer in cover:
        for number, block in enumerate(layer.blocks):
            column = layer.column(number, f"k{panes.index}")
            starts = micros_of(column, 0) if column is not None else np.zeros(0, np.int64)
            chosen = (starts <= until - panes.slide) & (starts < NEVER - panes.size)
            if since is not None:
                chosen &= starts > since - panes.size
            if chosen.any():
                pieces.append(take_rows(block, np.flatnonzero(chosen)))
    found = newest_rows(pieces) if pieces else None
    return found if found is not None and found.num_rows else None


def _between(type: pa.DataType, starts: Times, ends: Times) -> pa.Array:
    """Windows of a type."""
    fields = [pa.array(times).cast(field.type) for times, field in zip((starts, ends), type, strict=True)]
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
