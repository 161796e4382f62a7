"""Rows as they are kept: the form of a diffs layer, and the task that keeps those of a view."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.model.columns import COUNT, DIFF, HASH, ROW
from nosync.spark.task import Batches, ShardTask, Work, column
from nosync.state.merge import consolidate, is_key


def diffs(batch: pa.RecordBatch, payload: pa.Schema, counts: np.ndarray | None = None) -> pa.RecordBatch:
    """Rows as Spark hands them over, in the form of a diffs layer (not yet sorted)."""
    counts = batch.column(DIFF).to_numpy() if counts is None else counts
    columns = {HASH: batch.column(HASH).view(pa.uint64()), ROW: batch.column(ROW).view(pa.uint64())}
    columns.update({field.name: column(batch, field.name, field.type) for field in payload})
    return pa.RecordBatch.from_pydict(columns | {COUNT: pa.array(counts)})


def number_of_keys(payload: pa.Schema) -> int:
    return sum(is_key(name) for name in payload.names)


@dataclass(frozen=True)
class RetainTask(ShardTask):
    """Keeps the rows of a view, of one shard or of several."""

    work: Work
    payload: pa.Schema

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        for shard, change in self.work.by_shard(diffs(rows, self.payload)):
            self.work.hand_in(shard, change.num_rows, consolidate(change), started)
        yield from ()
