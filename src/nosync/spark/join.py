"""The join operator as Spark tasks: both sides' changes of a shard in, the change of the result out."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.kernels.join import LEFT, MATCHED, RIGHT, Joined, Joining, Part, join, rows_at
from nosync.kernels.matching import Matching, match
from nosync.spark.retain import diffs, nonempty
from nosync.spark.task import Work, column, emitted, stacked, unsigned

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class JoinTask:
    """`works` and `payloads` are those of the sides; both keep their rows by the hash of the key."""

    works: tuple[Work, Work]
    spec: Joining
    payloads: tuple[pa.Schema, pa.Schema]
    output: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        started = time.perf_counter()
        held = nonempty(batches)
        if not held:
            return
        rows = stacked(held)
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
        mine = pa.array(rows.column("_side").to_numpy() == side)
        return diffs([rows.select(["_hash", "_row", *payload.names, "_diff"]).filter(mine)], payload)

    def _column(self, found: Joined, part: Part, name: str) -> pa.Array:
        rows = len(part.weights)
        if name == "_diff":
            return pa.array(part.weights)
        if name == "_tells":
            return pa.array(np.full(rows, part.tells, np.int32))
        if name == "_hash":
            side, index = (found.left, part.left) if part.left is not None else (found.right, part.right)
            return rows_at(side, name, index, rows).view(pa.int64())
        return rows_at(*((found.left, name, part.left) if name[0] == "l" else (found.right, name, part.right)), rows)


@dataclass(frozen=True)
class MatchTask:
    """Passes on what is told of pairs, and tells of the side's rows (its `columns`) whether they are part of any."""

    work: Work
    spec: Matching
    columns: pa.Schema
    output: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        started = time.perf_counter()
        held = nonempty(batches)
        if not held:
            return
        rows = stacked(held)
        tells = rows.column("_tells").to_numpy()
        mine = rows.filter(pa.array((tells == MATCHED) | (tells == self.spec.side)))
        if mine.num_rows:
            yield from self._matched(mine, started)
        if self.spec.passing:
            passing = rows.filter(pa.array(tells != self.spec.side))
            yield from emitted(self.output, [passing.column(name) for name in self.output.names])

    def _matched(self, rows: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(rows)
        columns = [column(rows, field.name, field.type) for field in self.columns]
        told = rows.column("_tells").to_numpy(), rows.column("_diff").to_numpy()
        found = match(self.spec, self.work.cover(shard), unsigned(rows, "_hash"), columns, *told)
        self.work.hand_in(shard, rows.num_rows, found.layer, started)
        for tells, places, weights in found.told:
            values = {name: key.take(pa.array(places)) for name, key in zip(self.columns.names, found.keys, strict=True)}
            values |= {"_tells": pa.array(np.full(len(places), tells, np.int32)), "_diff": pa.array(weights)}
            values["_hash"] = pa.array(found.hashes[places].view(np.int64))
            nothing = {field.name: pa.nulls(len(places), field.type) for field in self.output if field.name not in values}
            yield from emitted(self.output, [(values | nothing)[name] for name in self.output.names])
