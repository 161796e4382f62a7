"""A trace's part of a narrow epoch: one task has the rows of all shards, looks up in all their layers, and writes for each of them.

Layers are those that tasks of single shards would have written, to the bit.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from nosync.model.columns import HASH
from nosync.model.hash_range import ALL_HASHES, HashRange
from nosync.model.identifiers import Shard
from nosync.model.layers import LayerInfo
from nosync.model.shards import lower_bounds, shard_ranges
from nosync.peers.host import LayerHost, home_host
from nosync.spark.receipts import Receipt
from nosync.spark.task import LAYERS, Work
from nosync.state.layer import ROWS_IN_GROUP, is_additive
from nosync.state.merge import is_key
from nosync.state.search import BloomUse

ALL = Shard(0)


@dataclass(frozen=True)
class NarrowWork(Work):
    """All shards as one."""

    def shard(self, batch: pa.RecordBatch) -> Shard:
        return ALL

    def held_by(self, shard: Shard) -> HashRange:
        return ALL_HASHES

    @property
    def host(self) -> LayerHost | None:
        return None if self.sharing is None else home_host(self.sharing, Path(self.home))

    def by_shard(self, change: pa.RecordBatch) -> Iterator[tuple[Shard, pa.RecordBatch]]:
        if change.num_rows:
            yield ALL, change

    def hand_in(
        self, shard: Shard, rows: int, batch: pa.RecordBatch | None, started: float, bloom: BloomUse | None = None, with_bloom: bool = False
    ) -> None:
        """One layer for each shard that has rows in the batch, which is sorted by hash."""
        if batch is None or not batch.num_rows:
            self._report(shard, rows, None, started, bloom)
            return
        bounds = np.array(lower_bounds(self.shards), np.uint64)
        cuts = [*np.searchsorted(batch.column(HASH).to_numpy(), bounds).tolist(), batch.num_rows]
        for number, held in enumerate(shard_ranges(self.shards)):
            part = batch.slice(cuts[number], cuts[number + 1] - cuts[number])
            if part.num_rows:
                mine = batch if part.num_rows == batch.num_rows else _alone(part, self.kind == "upserts")
                layer = self._write(held, mine, with_bloom)
                if not with_bloom:
                    LAYERS.keep(self.home, layer, mine)
                self._report(Shard(number), rows, layer, started, bloom)
                rows, bloom = 0, None  # counted once

    def _report(self, shard: Shard, rows: int, layer: LayerInfo | None, started: float, bloom: BloomUse | None) -> None:
        millis = round((time.perf_counter() - started) * 1e3, 1)
        held = None if layer is None else layer.range
        self.receipts.add([Receipt(self.trace, shard, self.lower, rows, layer, millis, bloom, held)])


def _alone(part: pa.RecordBatch, sparse: bool) -> pa.RecordBatch:
    """A slice in bytes of its own, as a task that never saw the rest would have made it."""
    where = pa.array(np.arange(part.num_rows))
    columns = {name: column.take(where) for name, column in zip(part.schema.names, part.columns, strict=True)}
    if sparse:
        columns = {name: column for name, column in columns.items() if not _is_bare(part.schema.field(name), column)}
    return pa.RecordBatch.from_pydict(columns)


def _is_bare(field: pa.Field, column: pa.Array) -> bool:
    """Whether a layer of upserts goes without the column: it holds nothing."""
    if field.name in (HASH, ROWS_IN_GROUP) or is_key(field.name):
        return False
    return not column.to_numpy().any() if is_additive(field) else column.null_count == len(column)
