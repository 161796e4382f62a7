"""timers: which keys of a fold are to be called again because event time has come so far.

A key has one timer at most. Beside the states lies an index of diffs, one row for each timer, placed by its time as `final` positions rows:
what falls due between two watermarks is found without looking at anything else. The time itself is part of the key's state.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.final import EARLIEST, LATEST, ORIGIN, TIME_BITS, release
from nosync.kernels.fold import States, Touched
from nosync.kernels.groups import Int64s, Uint64s, sort_by_key
from nosync.model.columns import COUNT, HASH, ROW
from nosync.state.layer import Layer
from nosync.state.merge import consolidate

_BEGINNING = np.uint64(((1 << 8) - 1) << TIME_BITS)


@dataclass(frozen=True, slots=True)
class Due:
    """Keys whose timers have come. `layer` takes those out of the index."""

    layer: pa.RecordBatch
    hashes: Uint64s
    keys: list[pa.Array]


def due(cover: Sequence[Layer], keys: pa.Schema, since: int | None, until: int | None) -> Due:
    """Timers after the watermark `since` and up to `until`."""
    nothing = _index(keys, [pa.nulls(0, field.type) for field in keys], np.zeros(0, np.uint64), np.zeros(0, np.int64), 1)
    released = release(cover, nothing, since, until)
    return Due(released.layer, released.rows.column(ROW).to_numpy(), [released.rows.column(name) for name in keys.names])


def _index(keys: pa.Schema, columns: Sequence[pa.Array], hashes: Uint64s, times: Int64s, count: int) -> pa.RecordBatch:
    """Rows of the index: where they lie, the hash of the key, the key."""
    positions = (hashes & _BEGINNING) | (np.clip(times, EARLIEST, LATEST) + ORIGIN).astype(np.uint64)
    named = {HASH: pa.array(positions), ROW: pa.array(hashes)} | dict(zip(keys.names, columns, strict=True))
    return pa.RecordBatch.from_pydict(named | {COUNT: pa.array(np.full(len(hashes), count, np.int64))})


def with_due(touched: Touched, called: Due) -> tuple[Touched, np.ndarray]:
    """All keys that are to be called, for rows or for the time, and which of them for the time."""
    rows = len(touched.hashes)
    hashes = np.concatenate((touched.hashes, called.hashes))
    keys = [pa.concat_arrays([one, other.cast(one.type)]) for one, other in zip(touched.keys, called.keys, strict=True)]
    order, starts = sort_by_key(hashes, keys)
    group = np.empty(len(order), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    first, last = np.zeros((2, len(starts)), np.int64)
    first[group[:rows]], last[group[:rows]] = touched.starts, touched.ends
    on_time = np.zeros(len(starts), bool)
    on_time[group[rows:]] = True
    where = order[starts]
    everyone = Touched(hashes[where], [key.take(pa.array(where)) for key in keys], touched.order, first, last, touched.weights)
    return everyone, on_time


def effective(times: pa.Array, until: int | None) -> pa.Array:
    """When timers set in this epoch come: what has passed already comes when event time moves on."""
    if until is None:
        return times
    values = np.maximum(times.fill_null(0).to_numpy(), until + 1)
    return pa.array(values, pa.int64(), mask=times.is_null().to_numpy(zero_copy_only=False))


def timer_layer(keys: pa.Schema, touched: Touched, called: Due, on_time: np.ndarray, before: States, after: States) -> pa.RecordBatch:
    """The change of the index: timers that have come or were replaced go, new ones come. The last value of a state is its timer."""
    parts = [called.layer]
    for states, chosen, count in ((before, before.alive & ~on_time, -1), (after, after.alive, 1)):
        times = states.values[-1]
        there = np.flatnonzero(chosen & times.is_valid().to_numpy(zero_copy_only=False))
        columns = [key.take(pa.array(there)) for key in touched.keys]
        parts.append(_index(keys, columns, touched.hashes[there], times.take(pa.array(there)).to_numpy(), count))
    stacked = [pa.concat_arrays([part.column(name) for part in parts]) for name in parts[0].schema.names]
    return consolidate(pa.RecordBatch.from_arrays(stacked, schema=parts[0].schema))
