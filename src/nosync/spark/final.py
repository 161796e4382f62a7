"""The final operator as a Spark task, and the rows that call it where no input arrives."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.compile.final import FinalNode
from nosync.kernels.final import release
from nosync.model.shards import lower_bounds
from nosync.spark.retain import diffs, nonempty
from nosync.spark.task import Work, emitted

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob


@dataclass(frozen=True)
class FinalTask:
    """Keeps rows until they close. `since` and `until` are the watermarks of the epoch before and of this one."""

    work: Work
    payload: pa.Schema
    output: pa.Schema
    since: int | None
    until: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter()
        held = nonempty(batches)
        if not held:
            return
        shard, change = self.work.shard(held[0]), diffs(held, self.payload)
        released = release(self.work.cover(shard), change, self.since, self.until)
        self.work.hand_in(shard, change.num_rows, released.layer, started)
        columns = [released.rows.column(field.name) for field in self.payload]
        places = released.rows.column("_hash").view(pa.int64())
        yield from emitted(self.output, [*columns, places, released.rows.column("_count")])


def final_change(job: "EpochJob", node: FinalNode, schema: pa.Schema, work: Work) -> tuple[DataFrame, FinalTask]:
    """What goes to the shards, and the task there."""
    since, until = job.moment.watermark_before(node.clock), job.moment.watermark(node.clock)
    calls = calling(job, node.fed)
    rows = job.rows(node.feed.piece).unionAll(calls) if job.piece_moves(node.feed.piece) else calls
    return rows, FinalTask(work, node.payload, schema, since, until)


def calling(job: "EpochJob", schema: StructType) -> DataFrame:
    """One row for each shard that counts for nothing: its task must run even where no row arrives."""
    bounds = [bound - (1 << 64) if bound >= 1 << 63 else bound for bound in lower_bounds(job.setting.shards)]
    places = job.setting.session.createDataFrame([(bound,) for bound in bounds], "_hash bigint").coalesce(1)
    values = {"_hash": F.col("_hash"), "_row": F.lit(0), "_diff": F.lit(0)}
    return places.select([values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in schema.fields])

