"""The accumulate operator as Spark tasks: the general way, and the fast way with a first aggregation beside the input.

General: rows -> exchange -> `reduce_rows`. Fast: rows -> `combine_rows` -> one blob per task and shard -> exchange -> `reduce_blobs`.
Both end in `_advance` and give the same bits.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.accumulate import Accumulation, Step, advance, grouped, merged
from nosync.kernels.groups import Groups, from_batch
from nosync.model.columns import DIFF, HASH, SHARD
from nosync.model.identifiers import Shard
from nosync.model.shards import lower_bounds
from nosync.spark.task import Work, chunks, column, emitted, unsigned
from nosync.state.canonical import rows_equal

BLOB = pa.schema([(SHARD, pa.int32()), ("blob", pa.binary())])
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class AccumulateTask:
    """What the tasks of an accumulate operator need. `output` is the schema of the change, None where nobody reads it."""

    work: Work
    spec: Accumulation
    output: pa.Schema | None

    @property
    def unborn(self) -> bool:
        """Whether this is a group without a key that no epoch has seen yet: it appears even where no row arrives."""
        return self.spec.whole and not self.work.covers

    def reduce_rows(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        yield from self.advance_with([(self.work.shard(batch), grouped_rows(self.spec, batch)) for batch in chunks(batches)])

    def reduce_blobs(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        yield from self.advance_with([part for batch in batches for part in self._unpacked(batch)])

    def combine_rows(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in chunks(batches):
            yield from packed(grouped_rows(self.spec, batch), self.work.shards)

    def _unpacked(self, batch: pa.RecordBatch) -> Iterator[tuple[Shard, Groups]]:
        for shard, blob in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield shard, self.groups_in(pa.ipc.open_stream(blob.as_buffer()).read_next_batch())

    def groups_in(self, batch: pa.RecordBatch) -> Groups:
        """Those that were put into the form of a layer."""
        return from_batch(batch, len(self.spec.keys), self.spec.best)

    def advance_with(self, parts: list[tuple[Shard, Groups]]) -> Batches:
        """Adds the parts, all of one shard, to its state; yields the change."""
        started = time.perf_counter()
        if parts:
            yield from self._advance(parts[0][0], merged(self.spec, [groups for _, groups in parts]), started)

    def _advance(self, shard: Shard, change: Groups, started: float) -> Batches:
        step = self._update_state(shard, change, started)
        if self.output is not None:
            yield from self._output(step.before, step.after, self.work.is_new(shard))

    def _update_state(self, shard: Shard, change: Groups, started: float) -> Step:
        """Adds the change to the state."""
        rows = int(np.abs(change.n).sum())
        step = advance(self.spec, self.work.cover(shard), change)
        new = self.spec.whole and self.work.is_new(shard)
        changed = np.full(len(change), True) if new else _changed(step.before, step.after)
        after = step.after if changed.all() else step.after.take(np.flatnonzero(changed))
        self.work.hand_in(shard, rows, after.to_batch(), started, step.bloom, with_bloom=self.spec.deduplicates)
        return step

    def _output(self, before: Groups, after: Groups, first: bool) -> Batches:
        """Old results out, new results in, where they differ."""
        was = before.n > 0 if not self.spec.whole else np.full(len(before), not first)
        now = after.n > 0 if not self.spec.whole else np.full(len(after), True)
        old, new = self.spec.finish(before), self.spec.finish(after)
        same = was & now & (rows_equal(old, new) if old else True)
        out, into = np.flatnonzero(was & ~same), np.flatnonzero(now & ~same)
        where = pa.array(out), pa.array(into)
        columns = [
            pa.concat_arrays([a.take(where[0]), b.take(where[1])])
            for a, b in zip([*before.keys, *old], [*after.keys, *new], strict=True)
        ]
        hashes = np.concatenate((before.hashes[out], after.hashes[into])).view(np.int64)
        diffs = np.concatenate((np.full(len(out), -1, np.int64), np.ones(len(into), np.int64)))
        assert self.output is not None
        yield from emitted(self.output, [*columns, pa.array(hashes), pa.array(diffs)])


def _changed(before: Groups, after: Groups) -> np.ndarray:
    """Groups whose accumulators differ: the rest needs no place in the layer."""
    changed: np.ndarray = before.n != after.n
    for name in before.additive.keys() | after.additive.keys():
        changed |= before.additive.get(name, np.int64(0)) != after.additive.get(name, np.int64(0))
    for name in after.best:
        changed |= ~rows_equal([before.best[name]], [after.best[name]])
    return changed


def grouped_rows(spec: Accumulation, batch: pa.RecordBatch) -> Groups:
    """Rows as Spark hands them over, as groups."""
    return grouped(
        spec,
        unsigned(batch, HASH),
        [column(batch, f"k{i}", type) for i, type in enumerate(spec.keys)],
        [column(batch, f"i{i}", type) for i, type in enumerate(spec.inputs)],
        batch.column(DIFF).to_numpy(),
    )


def packed(groups: Groups, shards: int) -> Batches:
    """The groups cut by shard, each part a blob in the form of a layer."""
    bounds = np.array(lower_bounds(shards), np.uint64)
    cuts = [*np.searchsorted(groups.hashes, bounds).tolist(), len(groups)]
    batch = groups.to_batch()
    for shard in range(shards):
        part = batch.slice(cuts[shard], cuts[shard + 1] - cuts[shard])
        if part.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_batch(part)
            yield pa.RecordBatch.from_arrays([pa.array([shard], pa.int32()), _blob(sink.getvalue())], schema=BLOB)


def _blob(content: pa.Buffer) -> pa.Array:
    """The buffer as the one value of a binary array, without a copy."""
    offsets = pa.py_buffer(np.array([0, content.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, content])
