"""The step of joins whose condition says more than equal keys: rows by whether they are part of any pair."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.compile.conditional_joins import MatchNode
from nosync.kernels.join import MATCHED
from nosync.kernels.matching import Matching, match
from nosync.model.columns import DIFF, HASH, PART
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, column, emitted, unsigned

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob



def step(job: "EpochJob", node: MatchNode) -> DataFrame:
    schema = change_schema(node.schema)
    task = MatchTask(job.work(node.trace, "upserts"), node.spec, node.columns, arrow_schema(schema, node.name))
    return job.exchange(job.rows(node.feed.piece), node).mapInArrow(task, schema)


@dataclass(frozen=True)
class MatchTask(ShardTask):
    """Passes pairs on, and adds the side's rows (its `columns`) by whether they are part of any."""

    work: Work
    spec: Matching
    columns: pa.Schema
    output: pa.Schema

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        part = rows.column(PART).to_numpy()
        mine = rows.filter(pa.array((part == MATCHED) | (part == self.spec.side)))
        if mine.num_rows:
            yield from self._matched(mine, started)
        if self.spec.passing:
            passing = rows.filter(pa.array(part != self.spec.side))
            yield from emitted(self.output, [passing.column(name) for name in self.output.names])

    def _matched(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(rows)
        columns = [column(rows, field.name, field.type) for field in self.columns]
        given = rows.column(PART).to_numpy(), rows.column(DIFF).to_numpy()
        found = match(self.spec, self.work.cover(shard), unsigned(rows, HASH), columns, *given)
        self.work.hand_in(shard, rows.num_rows, found.layer, started)
        for part, indices, weights in found.emitted:
            values = {name: key.take(pa.array(indices)) for name, key in zip(self.columns.names, found.keys, strict=True)}
            values |= {PART: pa.array(np.full(len(indices), part, np.int32)), DIFF: pa.array(weights)}
            values[HASH] = pa.array(found.hashes[indices].view(np.int64))
            nothing = {field.name: pa.nulls(len(indices), field.type) for field in self.output if field.name not in values}
            yield from emitted(self.output, [(values | nothing)[name] for name in self.output.names])
