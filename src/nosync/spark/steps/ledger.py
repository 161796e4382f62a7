"""The ledger of a source as Spark tasks: its changes in, what counts out, and beside it what was refused, with the reason."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.compile.ledger import LedgerNode
from nosync.kernels.ledger import Events, post_keyed, post_rows
from nosync.model.columns import DIFF, EPOCH, HASH, POSITION, REASON, REJECTION
from nosync.model.identifiers import Shard
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, column, emitted, unsigned

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob



def step(job: "EpochJob", node: LedgerNode) -> DataFrame:
    schema = change_schema(node.schema)
    task = LedgerTask(job.work(node.trace, "upserts"), node.keys, node.columns, node.sequence, arrow_schema(schema, node.name))
    return job.exchange(job.rows(node.feed.piece), node).mapInArrow(task, schema)


@dataclass(frozen=True)
class LedgerTask(ShardTask):
    """`keys`, `columns` and `sequence` (of one column or none) are what comes in, `output` what goes out."""

    work: Work
    keys: pa.Schema
    columns: pa.Schema
    sequence: pa.Schema
    output: pa.Schema

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(rows)
        broken = rows.column(REASON).is_valid()
        events = rows.filter(pa.array(~broken.to_numpy(zero_copy_only=False)))
        if events.num_rows:
            yield from self._post(shard, events, started)
        else:
            self.work.hand_in(shard, 0, None, started)
        yield from self._refused(rows.filter(broken))

    def _post(self, shard: Shard, batch: pa.RecordBatch, started: float) -> Batches:
        columns, keys, sequence = (
            [column(batch, field.name, field.type) for field in schema] for schema in (self.columns, self.keys, self.sequence)
        )
        positions = [batch.column(name).to_numpy() for name in POSITION]
        events = Events(unsigned(batch, HASH), keys, columns, batch.column(DIFF).to_numpy(), positions, *sequence)
        posted = (post_keyed if keys else post_rows)(self.work.cover(shard), events)
        self.work.hand_in(shard, batch.num_rows, posted.layer, started)
        values = dict(zip(self.columns.names, posted.rows, strict=True))
        values |= {HASH: pa.array(posted.hashes.view(np.int64)), DIFF: pa.array(posted.diffs)}
        yield from self._emitted(values, len(posted.diffs))
        words = "nothing to remove: no row with this key" if keys else "nothing to remove: no such row"
        yield from self._refused(batch.take(pa.array(posted.refused)), words)

    def _refused(self, rows: pa.RecordBatch, words: str | None = None) -> Batches:
        """Each as an added row of its own."""
        values = {name: rows.column(name) for name in (*self.columns.names, *REJECTION, HASH)}
        if words is not None:
            values[REASON] = pa.array([words] * rows.num_rows, pa.string())
        yield from self._emitted(values | {DIFF: pa.array(np.ones(rows.num_rows, np.int64))}, rows.num_rows)

    def _emitted(self, values: dict[str, pa.Array], rows: int) -> Batches:
        values = {EPOCH: pa.array(np.full(rows, self.work.lower, np.int64)), **values}
        missing = {field.name: pa.nulls(rows, field.type) for field in self.output if field.name not in values}
        yield from emitted(self.output, [(values | missing)[name] for name in self.output.names])
