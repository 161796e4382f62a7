"""Sliding windows as Spark tasks: rows become panes, and panes become windows, at once or as these close."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.compile.sliding_windows import PaneNode, SlidingNode
from nosync.kernels.groups import Groups
from nosync.kernels.panes import Panes, closed, spread, without_calls
from nosync.model.identifiers import Shard
from nosync.spark.schemas import change_schema
from nosync.spark.steps.accumulate import accumulated, output_of, reduced
from nosync.spark.steps.accumulate_task import AccumulateTask
from nosync.spark.task import emitted

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob


def step(job: "EpochJob", node: PaneNode) -> DataFrame:
    """Windows that are emitted once, as they close."""
    schema, rows = change_schema(node.schema), job.rows(node.feed.piece)
    since, until = job.moment.watermark_before(node.clock), job.moment.watermark(node.clock)
    task = PaneTask(job.work(node.trace, "upserts"), node.spec, arrow_schema(schema, node.name), node.panes, since, until)
    calls = job.calls(rows.schema)
    return reduced(job, node, task, rows.unionAll(calls) if job.piece_changes(node.feed.piece) else calls, schema)


def sliding_step(job: "EpochJob", node: SlidingNode) -> DataFrame:
    """Windows that are emitted early."""
    until = job.moment.watermark(node.clock)
    return accumulated(job, node, SlidingTask(job.work(node.trace, "upserts"), node.spec, output_of(job, node), node.panes, until))


@dataclass(frozen=True)
class PaneTask(AccumulateTask):
    """`since` and `until` are the watermarks of the epoch before and of this one. What closes is emitted as the epoch before left it."""

    panes: Panes
    since: int | None
    until: int | None

    def _advance(self, shard: Shard, change: Groups, started: float) -> Iterator[pa.RecordBatch]:
        windows = closed(self.spec, self.panes, self.work.cover(shard), self.since, self.until)
        self._update_state(shard, without_calls(change), started)
        if windows is not None and self.output is not None:
            columns = [*windows.keys, *self.spec.finish(windows)]
            hashes = pa.array(windows.hashes.view(np.int64))
            yield from emitted(self.output, [*columns, hashes, pa.array(np.ones(len(windows), np.int64))])


@dataclass(frozen=True)
class SlidingTask(AccumulateTask):
    """Windows that are emitted early. `until` is the watermark: what ended by then stays as it is."""

    panes: Panes
    until: int | None

    def _advance(self, shard: Shard, change: Groups, started: float) -> Iterator[pa.RecordBatch]:
        windows = spread(self.spec, self.panes, change, self.until)
        if len(windows):
            yield from super()._advance(shard, windows, started)
