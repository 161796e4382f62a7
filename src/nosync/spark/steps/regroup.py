"""The step of regroup: rows of groups are kept, Spark recomputes the touched groups, and what differs from before goes on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from nosync.bridge.arrow import arrow_schema
from nosync.graph.operators import RegroupNode
from nosync.kernels.regroup import Gathered, gather, replace_results
from nosync.kernels.top import Limit, order_codes, top
from nosync.model.columns import COUNT, GHOST, GROUP, HASH, ROW
from nosync.model.errors import Failed
from nosync.spark.imports import fed
from nosync.spark.retain import diffs, number_of_keys
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, emitted
from nosync.state.canonical import canonical_bytes
from nosync.state.expiry import Expired, with_time

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob



def step(job: "EpochJob", node: RegroupNode) -> DataFrame:
    gathered = arrow_schema(node.gathered.schema, node.name)
    kept, _ = node.traces
    gather = GatherTask(job.work(kept, "diffs"), node.payload, gathered, node.announced, node.limit, node.closing)
    touched = job.exchange(fed(job, node), node).mapInArrow(gather, node.gathered.schema)
    if node.read_again:  # or each reader would gather anew
        job.persist(touched)
    job.provide(node.gathered, touched)
    results = job.rows(node.evaluate)
    schema = change_schema(node.schema)
    empty = job.context.empties.get(node.name)
    work = job.work(node.trace, "diffs")
    replacing = ReplaceTask(work, node.results, arrow_schema(schema, node.name), empty, _closed(job, node))
    if empty is not None and not replacing.work.covers:
        results = results.unionAll(job.marker(results))
    return job.exchange(results).mapInArrow(replacing, schema)


def _closed(job: "EpochJob", node: RegroupNode) -> Expired | None:
    """Results that change no more."""
    expiry = node.expiries[node.traces.index(node.name)] if node.expiries else None
    until = expiry.until(job.lower, job.seen) if expiry else None
    return Expired(expiry.column, until) if expiry is not None and until is not None else None


@dataclass(frozen=True)
class GatherTask(ShardTask):
    """Keeps the rows of groups, and hands all rows of touched groups to Spark. `announced`: with a ghost for each of them.

    `limit`: only the rows among which the first are, kept in the order of the columns `o0`, `o1`... `closing`: the key that says when a
    group closes, where results do not show it.
    """

    work: Work
    payload: pa.Schema
    output: pa.Schema
    announced: bool = False
    limit: Limit | None = None
    closing: int | None = None

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(rows)
        change, cover = self._change(rows), self.work.cover(shard)
        keys = number_of_keys(self.payload)
        gathered = gather(cover, change, keys, self.announced) if self.limit is None else top(cover, change, keys, self.limit)
        self.work.hand_in(shard, change.num_rows, gathered.layer, started)
        yield from emitted(self.output, [self._column(gathered, name) for name in self.output.names])

    def _column(self, gathered: Gathered, name: str) -> pa.Array:
        if name == GHOST:
            return pa.array(gathered.ghosts)
        if name == HASH:
            return gathered.rows.column(name).view(pa.int64())
        if name == GROUP:
            keys = gathered.rows.columns[2 : 2 + number_of_keys(self.payload)]
            contents = canonical_bytes(keys, gathered.rows.num_rows)
            return contents if self.closing is None else with_time(keys[self.closing], contents)
        return gathered.rows.column(name)

    def _change(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.limit is not None:
            order = [rows.column(f"o{i}") for i in range(len(self.limit.orders))]
            rows = rows.append_column(ROW, pa.array(order_codes(self.limit, order).view(np.int64)))
        return diffs(rows, self.payload)


@dataclass(frozen=True)
class ReplaceTask(ShardTask):
    """Takes recomputed results and emits their difference to the previous ones.

    `empty`: the result over no rows, for an aggregate without a key; it stands from the first epoch on. In words where it fails.
    `closed` results stay as they are, whether or not their rows are still kept.
    """

    work: Work
    payload: pa.Schema
    output: pa.Schema
    empty: pa.RecordBatch | str | None
    closed: Expired | None = None

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(rows)
        ghosts = rows.column(GHOST).to_numpy(zero_copy_only=False)
        results = diffs(rows, self.payload, counts=np.ones(len(ghosts), np.int64))
        if self.empty is not None:
            results, ghosts = self._whole(results, ghosts)
        change = replace_results(self.work.cover(shard), results, ghosts, number_of_keys(self.payload), self.closed)
        self.work.hand_in(shard, len(ghosts), change, started)
        columns = [change.column(field.name) for field in list(self.output)[:-2]]
        hashes = change.column(HASH).view(pa.int64())
        yield from emitted(self.output, [*columns, hashes, change.column(COUNT)])

    def _whole(self, results: pa.RecordBatch, ghosts: np.ndarray) -> tuple[pa.RecordBatch, np.ndarray]:
        """One group that never goes away: where only ghosts are left, the result over no rows takes their place."""
        assert self.empty is not None
        if ghosts.all():
            if isinstance(self.empty, str):
                raise Failed(f"the aggregate fails over no rows: {self.empty}")
            return self.empty.select(results.schema.names).cast(results.schema), np.zeros(1, bool)
        kept = results.filter(pa.array(~ghosts))
        return kept, np.zeros(kept.num_rows, bool)
