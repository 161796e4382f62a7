"""The join operator as Spark tasks: both sides' changes of a shard in, the change of the result out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.compile.rules.join import JoinNode
from nosync.graph.templates import Branch, Piece
from nosync.kernels.join import LEFT, RIGHT, Joined, JoinedRows, Joining, join, rows_at
from nosync.model.columns import DIFF, HASH, PART, ROW, SIDE
from nosync.spark.retain import diffs
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, emitted

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob



def step(job: "EpochJob", node: JoinNode) -> DataFrame:
    rows = job.rows(rows_of_join(job, node))
    left, right = node.traces
    works = job.work(left, "diffs"), job.work(right, "diffs")
    schema = change_schema(node.schema, node.sharded)
    task = JoinTask(works, node.spec, node.payloads, arrow_schema(schema, node.name))
    return job.exchange(rows, node).mapInArrow(task, schema)


def rows_of_join(job: "EpochJob", node: JoinNode) -> Piece:
    """The sides that have changed."""
    assert isinstance(node.feed.piece, Branch)
    sides = [side for side in node.feed.piece.children if job.piece_changes(side)]
    return sides[0] if len(sides) == 1 else node.feed.piece


@dataclass(frozen=True)
class JoinTask(ShardTask):
    """`works` and `payloads` are those of the sides; both keep their rows by the hash of the key."""

    works: tuple[Work, Work]
    spec: Joining
    payloads: tuple[pa.Schema, pa.Schema]
    output: pa.Schema

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.works[0].shard(rows)
        changes = self._change(rows, LEFT), self._change(rows, RIGHT)
        found = join(self.spec, (self.works[0].cover(shard), self.works[1].cover(shard)), changes)
        for work, change, layer in zip(self.works, changes, found.layers, strict=True):
            if change.num_rows:
                work.hand_in(shard, change.num_rows, layer, started)
        for part in found.parts:
            yield from emitted(self.output, [self._column(found, part, name) for name in self.output.names])

    def _change(self, rows: pa.RecordBatch, side: int) -> pa.RecordBatch:
        """One side's rows, with the columns it keeps."""
        payload = self.payloads[0 if side == LEFT else 1]
        mine = pa.array(rows.column(SIDE).to_numpy() == side)
        return diffs(rows.select([HASH, ROW, *payload.names, DIFF]).filter(mine), payload)

    def _column(self, found: Joined, part: JoinedRows, name: str) -> pa.Array:
        rows = len(part.weights)
        if name == DIFF:
            return pa.array(part.weights)
        if name == PART:
            return pa.array(np.full(rows, part.kind, np.int32))
        if name == HASH:
            side, index = (found.left, part.left) if part.left is not None else (found.right, part.right)
            return rows_at(side, name, index, rows).view(pa.int64())
        return rows_at(*((found.left, name, part.left) if name[0] == "l" else (found.right, name, part.right)), rows)
