"""The rows of a view as of an epoch, block by block. Reads layers; writes nothing; needs no Spark."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from nosync.history.record import ViewRecord
from nosync.kernels.groups import Groups, from_batch
from nosync.model.columns import COUNT, HASH
from nosync.state.layer import Layer
from nosync.state.merge import scan


def rows(view: ViewRecord, cover: Sequence[Layer], owns_whole: bool = False) -> Iterator[pa.RecordBatch]:
    """All rows in one shard. `owns_whole`: this shard answers for an aggregate without a key, also where it has seen no row yet."""
    found = False
    if cover:
        for block in scan(cover, view.kind):
            found = True
            yield _finished(view, block) if view.spec else repeated(view, block)
    if view.spec is not None and view.spec.whole and owns_whole and not found:
        nothing = Groups(np.array([42], np.uint64), [], np.zeros(1, np.int64), {}, {})
        yield of_groups(view, nothing)


def _finished(view: ViewRecord, block: pa.RecordBatch) -> pa.RecordBatch:
    assert view.spec is not None
    return of_groups(view, from_batch(block, len(view.spec.keys), view.spec.best))


def of_groups(view: ViewRecord, groups: Groups) -> pa.RecordBatch:
    """The rows that groups are in the view."""
    assert view.spec is not None
    columns = [*groups.keys, *view.spec.finish(groups)]
    places = [pa.array(groups.hashes.view(np.int64))] if view.placed else []
    return _batch(view, [*(columns[i] for i in view.columns), *places])


def repeated(view: ViewRecord, block: pa.RecordBatch) -> pa.RecordBatch:
    """Each row as often as it occurs."""
    counts = np.maximum(block.column(COUNT).to_numpy(), 0)
    columns = [block.column(f"c{i}") for i in view.columns or range(len(view.schema) - view.placed)]
    if view.placed:
        columns.append(block.column(HASH).view(pa.int64()))
    if not columns:
        return pa.RecordBatch.from_pylist([{}] * int(counts.sum()), schema=view.schema)
    if (counts != 1).any():
        where = pa.array(np.repeat(np.arange(block.num_rows), counts))
        columns = [column.take(where) for column in columns]
    return _batch(view, columns)


def _batch(view: ViewRecord, columns: list[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, schema=view.schema)
