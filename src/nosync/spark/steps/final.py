"""The step of final results: rows wait for their window to close."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.compile.final_results import FinalNode
from nosync.kernels.final import release
from nosync.model.columns import COUNT, HASH
from nosync.spark.retain import diffs
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, emitted

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob


def step(job: "EpochJob", node: FinalNode) -> DataFrame:
    schema, calls = change_schema(node.schema), job.calls(node.fed)
    since, until = job.moment.watermark_before(node.clock), job.moment.watermark(node.clock)
    rows = job.rows(node.feed.piece).unionAll(calls) if job.piece_changes(node.feed.piece) else calls
    task = FinalTask(job.work(node.trace, "diffs"), node.payload, arrow_schema(schema, node.name), since, until)
    return job.exchange(rows, node).mapInArrow(task, schema)


@dataclass(frozen=True)
class FinalTask(ShardTask):
    """Keeps rows until they close. `since` and `until` are the watermarks of the epoch before and of this one."""

    work: Work
    payload: pa.Schema
    output: pa.Schema
    since: int | None
    until: int | None

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard, change = self.work.shard(rows), diffs(rows, self.payload)
        released = release(self.work.cover(shard), change, self.since, self.until)
        self.work.hand_in(shard, change.num_rows, released.layer, started)
        columns = [released.rows.column(field.name) for field in self.payload]
        hashes = released.rows.column(HASH).view(pa.int64())
        yield from emitted(self.output, [*columns, hashes, released.rows.column(COUNT)])
