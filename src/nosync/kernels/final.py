"""final: rows wait until their window has closed, and are then emitted once.

A row's *position* (its `_hash`): eight bits of its own hash, then the time at which it closes. So what closes between two watermarks lies,
in every layer, in one range for each of the 256 beginnings: nothing else is looked at, and work is in proportion to the change and to what
closes. Rows that have been emitted are taken out of the state again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.model.columns import COUNT, HASH
from nosync.state.layer import Layer
from nosync.state.merge import consolidate
from nosync.state.search import rows_between

TIME_BITS = 56
ORIGIN = 1 << (TIME_BITS - 1)  # times before 1970 have positions too
EARLIEST, LATEST = -ORIGIN, ORIGIN - 1
_TIME = np.uint64((1 << TIME_BITS) - 1)
_STARTS = np.arange(256, dtype=np.uint64) << np.uint64(TIME_BITS)


@dataclass(frozen=True, slots=True)
class Released:
    """`layer`: the change to keep. `rows`: what has closed, with how often each row occurs."""

    layer: pa.RecordBatch
    rows: pa.RecordBatch


def release(cover: Sequence[Layer], change: pa.RecordBatch, since: int | None, until: int | None) -> Released:
    """`change` has the form of a diffs layer, unsorted. What closes after `since` (emitted before) and up to `until` is released;
    changes of what has closed come too late.
    """
    change = consolidate(change)
    if until is None:
        return Released(change, change.slice(0, 0))
    ends = (change.column(HASH).to_numpy() & _TIME).astype(np.int64) - ORIGIN
    change = change.filter(pa.array(ends > until))
    closed = rows_between(cover, _STARTS | _time(EARLIEST if since is None else since + 1), _STARTS | _time(until))
    if closed is None or (since is not None and since >= until):
        return Released(change, change.slice(0, 0))
    closed = closed.select(change.schema.names)
    gone = closed.set_column(closed.num_columns - 1, closed.schema.field(COUNT), pa.array(-closed.column(COUNT).to_numpy()))
    both = [pa.concat_arrays([change.column(i), gone.column(i)]) for i in range(change.num_columns)]
    return Released(consolidate(pa.RecordBatch.from_arrays(both, schema=change.schema)), closed)


def _time(microseconds: int) -> np.uint64:
    return np.uint64(min(max(microseconds, EARLIEST), LATEST) + ORIGIN)
