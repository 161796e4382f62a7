"""Operators that keep rows, as Spark tasks: the rows of a view, and the two halves of regroup."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.regroup import Gathered, gather, settle
from nosync.kernels.top import Limit, places, top
from nosync.model.errors import Failed
from nosync.model.identifiers import Shard
from nosync.model.shards import lower_bounds
from nosync.spark.task import Work, column, emitted, stacked
from nosync.state.canonical import canonical_bytes
from nosync.state.expiry import Expired
from nosync.state.merge import consolidate, is_key

Batches = Iterator[pa.RecordBatch]


def diffs(batches: list[pa.RecordBatch], payload: pa.Schema, counts: np.ndarray | None = None) -> pa.RecordBatch:
    """Rows as Spark hands them over, in the form of a diffs layer (not yet sorted)."""
    batch = stacked(batches)
    counts = batch.column("_diff").to_numpy() if counts is None else counts
    columns = {"_hash": batch.column("_hash").view(pa.uint64()), "_row": batch.column("_row").view(pa.uint64())}
    columns.update({field.name: column(batch, field.name, field.type) for field in payload})
    return pa.RecordBatch.from_pydict(columns | {"_count": pa.array(counts)})


def number_of_keys(payload: pa.Schema) -> int:
    return sum(is_key(name) for name in payload.names)


def nonempty(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return [batch for batch in batches if batch.num_rows]


@dataclass(frozen=True)
class RetainTask:
    """Keeps the rows of a view, of one shard or of several."""

    work: Work
    payload: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        started = time.perf_counter()
        held = nonempty(batches)
        if held:
            for shard, change in by_shard(diffs(held, self.payload), self.work.shards):
                self.work.hand_in(shard, change.num_rows, consolidate(change), started)
        yield from ()


def by_shard(change: pa.RecordBatch, shards: int) -> Iterator[tuple[Shard, pa.RecordBatch]]:
    """The rows of each shard that has some."""
    bounds = np.array(lower_bounds(shards), np.uint64)
    numbers = np.searchsorted(bounds, change.column("_hash").to_numpy(), side="right") - 1
    found = np.unique(numbers)
    for shard in found:
        yield Shard(int(shard)), change if len(found) == 1 else change.take(pa.array(np.flatnonzero(numbers == shard)))


@dataclass(frozen=True)
class GatherTask:
    """Keeps the rows of groups, and hands all rows of touched groups to Spark. `announced`: with a ghost for each of them.

    `limit`: only the rows among which the first are, kept in the order of the columns `o0`, `o1`...
    """

    work: Work
    payload: pa.Schema
    output: pa.Schema
    announced: bool = False
    limit: Limit | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        started = time.perf_counter()
        held = nonempty(batches)
        if not held:
            return
        shard = self.work.shard(held[0])
        change, cover = self._change(stacked(held)), self.work.cover(shard)
        keys = number_of_keys(self.payload)
        gathered = gather(cover, change, keys, self.announced) if self.limit is None else top(cover, change, keys, self.limit)
        self.work.hand_in(shard, change.num_rows, gathered.layer, started)
        yield from emitted(self.output, [self._column(gathered, name) for name in self.output.names])

    def _column(self, gathered: Gathered, name: str) -> pa.Array:
        match name:
            case "_ghost":
                return pa.array(gathered.ghosts)
            case "_hash":
                return gathered.rows.column(name).view(pa.int64())
            case "_group":
                keys = gathered.rows.columns[2 : 2 + number_of_keys(self.payload)]
                return canonical_bytes(keys, gathered.rows.num_rows)
        return gathered.rows.column(name)

    def _change(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.limit is not None:
            order = [rows.column(f"o{i}") for i in range(len(self.limit.orders))]
            rows = rows.append_column("_row", pa.array(places(self.limit, order).view(np.int64)))
        return diffs([rows], self.payload)


@dataclass(frozen=True)
class SettleTask:
    """Takes recomputed results and emits their difference to the previous ones.

    `empty`: the result over no rows, for an aggregate without a key; it stands from the first epoch on. In words where it fails.
    `closed` results stay as they are, whether or not their rows are still kept.
    """

    work: Work
    payload: pa.Schema
    output: pa.Schema
    empty: pa.RecordBatch | str | None
    closed: Expired | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        started = time.perf_counter()
        held = nonempty(batches)
        if not held:
            return
        shard = self.work.shard(held[0])
        ghosts = np.concatenate([batch.column("_ghost").to_numpy(zero_copy_only=False) for batch in held])
        results = diffs(held, self.payload, counts=np.ones(len(ghosts), np.int64))
        if self.empty is not None:
            results, ghosts = self._whole(results, ghosts)
        change = settle(self.work.cover(shard), results, ghosts, number_of_keys(self.payload), self.closed)
        self.work.hand_in(shard, len(ghosts), change, started)
        columns = [change.column(field.name) for field in list(self.output)[:-2]]
        hashes = change.column("_hash").view(pa.int64())
        yield from emitted(self.output, [*columns, hashes, change.column("_count")])

    def _whole(self, results: pa.RecordBatch, ghosts: np.ndarray) -> tuple[pa.RecordBatch, np.ndarray]:
        """One group that never goes away: where only ghosts are left, the result over no rows takes their place."""
        assert self.empty is not None
        if ghosts.all():
            if isinstance(self.empty, str):
                raise Failed(f"the aggregate fails over no rows: {self.empty}")
            return self.empty.select(results.schema.names).cast(results.schema), np.zeros(1, bool)
        kept = results.filter(pa.array(~ghosts))
        return kept, np.zeros(kept.num_rows, bool)
