"""The step of `dropDuplicatesWithinWatermark`: rows whose key is not remembered."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.compile.rules.within_watermark import WithinNode
from nosync.kernels.within_watermark import first_rows
from nosync.model.columns import DIFF, HASH
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, column, emitted, unsigned

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob


def step(job: "EpochJob", node: WithinNode) -> DataFrame:
    schema, work = change_schema(node.schema), job.work(node.trace, "upserts")
    output, watermark = arrow_schema(schema, node.name), job.moment.watermark(node.clock)
    task = WithinTask(work, node.keys, node.columns, output, node.time, node.delay, watermark)
    return job.exchange(job.rows(node.feed.piece), node).mapInArrow(task, schema)


@dataclass(frozen=True)
class WithinTask(ShardTask):
    """`keys` and `columns` are Arrow's view of the rows, `output` of the change; `time` is the number of the event time's column."""

    work: Work
    keys: pa.Schema
    columns: pa.Schema
    output: pa.Schema
    time: int
    delay: int
    watermark: int | None

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(rows)
        keys, columns = ([column(rows, field.name, field.type) for field in schema] for schema in (self.keys, self.columns))
        diffs = rows.column(DIFF).to_numpy()
        cover = self.work.cover(shard)
        found = first_rows(cover, unsigned(rows, HASH), keys, columns, self.time, diffs, self.delay, self.watermark)
        self.work.hand_in(shard, rows.num_rows, found.layer, started)
        values = [values.take(pa.array(found.rows)) for values in columns]
        hashes = pa.array(found.hashes.view(np.int64))
        yield from emitted(self.output, [*values, hashes, pa.array(np.ones(len(hashes), np.int64))])
