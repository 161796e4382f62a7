"""within_watermark: the first row of each key, and until when the key is remembered.

Of rows that come in one epoch the one with the earliest event time is the first; of several, the first by their columns, left to right. So
the answer depends on which rows came in which epoch, and on nothing else. State is kept as upserts with a column `value`: a key is there
until the watermark has come so far, whether or not its row has been dropped by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.fold import previous_states, touch
from nosync.kernels.groups import Groups, Int64s, Uint64s
from nosync.state.layer import Layer

UNTIL = "value0"  # a column of the layers: microseconds


@dataclass(frozen=True, slots=True)
class First:
    """`layer`: the keys that are remembered from now on. `rows`: which rows go on, with the `hashes` of their keys."""

    layer: pa.RecordBatch
    rows: Int64s
    hashes: Uint64s


def first_rows(
    cover: Sequence[Layer],
    hashes: Uint64s,
    keys: Sequence[pa.Array],
    rows: Sequence[pa.Array],
    time: int,
    diffs: Int64s,
    delay: int,
    watermark: int | None,
) -> First:
    """`rows` are the columns of the new rows, `time` the number of the one with their event time. What has none counts as of 1970."""
    touched = touch(hashes, keys, rows, [rows[time]], diffs, net=False)
    before = previous_states(cover, touched, [pa.int64()])
    until = before.values[0].fill_null(0).to_numpy()
    known = before.alive if watermark is None else before.alive & (until > watermark)
    fresh = np.flatnonzero(~known)
    first = touched.order[touched.starts][fresh]
    times = rows[time].cast(pa.int64()).fill_null(0).to_numpy()[first]
    groups = Groups(touched.hashes[fresh], [key.take(pa.array(fresh)) for key in touched.keys], np.ones(len(fresh), np.int64), {}, {})
    groups.best[UNTIL] = pa.array(times + delay)
    return First(groups.to_batch(), first, touched.hashes[fresh])
