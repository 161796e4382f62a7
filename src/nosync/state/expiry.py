"""Rows of closed windows, left out when layers are merged.

Only merges that start at the beginning of a trace may leave them out, and only by the watermark of the first epoch that reads the merged
layer: no epoch from there on asks for them, and what is merged is a function of its inputs and its range.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.columns import HASH

Times = npt.NDArray[np.int64]
NEVER = np.int64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class Expired:
    """Rows whose time in `column` (the end, where it is a window) is `until` or before. `chained`: a row lives as long as its session."""

    column: str
    until: int
    chained: bool = False

    def living(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows to keep. All rows of a hash must be there."""
        column = batch.column(self.column)
        if not self.chained:
            return micros_of(column, 1) > self.until
        hashes: npt.NDArray[np.uint64] = batch.column(HASH).to_numpy()
        return session_ends(hashes, micros_of(column, 0), micros_of(column, 1)) > self.until


def with_time(column: pa.Array, contents: pa.Array) -> pa.Array:
    """Bytes that begin with a time, or the end of a window: eight of them, most significant first."""
    times = pa.py_buffer(micros_of(column, 1).astype(">i8").tobytes())
    first = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(contents), [None, times]).cast(contents.type)
    return pc.binary_join_element_wise(first, contents, pa.scalar(b"", contents.type))


def micros_of(column: pa.Array, field: int) -> Times:
    """Microseconds of a time, of the start (0) or end (1) of a window, or of `with_time`; what has none never ends."""
    if pa.types.is_binary(column.type):
        first = pc.binary_slice(column, 0, 8).cast(pa.binary(8))
        return np.frombuffer(first.buffers()[1], ">i8", len(first), 8 * first.offset).astype(np.int64)
    if pa.types.is_struct(column.type):
        column = pc.struct_field(column, [field])
    found: Times = pc.fill_null(column.cast(pa.int64()), NEVER).to_numpy()
    return found


def session_ends(hashes: npt.NDArray[np.uint64], starts: Times, ends: Times) -> Times:
    """For each row the end of the session that it is part of: rows of one hash that touch or overlap, one after another."""
    order = np.lexsort((starts, hashes))
    group = np.cumsum(np.concatenate(([0], hashes[order][1:] != hashes[order][:-1])))
    latest = _running_latest(group, ends[order])
    apart = np.concatenate(([True], (group[1:] != group[:-1]) | (starts[order][1:] > latest[:-1])))
    first = np.flatnonzero(apart)
    whole = np.maximum.reduceat(ends[order], first) if len(first) else ends[:0]
    found = np.empty_like(ends)
    found[order] = np.repeat(whole, np.diff(np.append(first, len(order))))
    return found


def _running_latest(group: npt.NDArray[np.int64], ends: Times) -> Times:
    """The latest end so far within each group."""
    values, rank = np.unique(ends, return_inverse=True)
    base = group * np.int64(len(values))
    found: Times = values[np.maximum.accumulate(base + rank) - base] if len(values) else ends
    return found
