"""What all tasks share: where they work, how they open layers, how they hand in what they wrote."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import Accumulator

from nosync.journal.names import layer_path
from nosync.model.columns import HASH
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, Shard, TraceName
from nosync.model.layers import Covers, Kind, LayerInfo
from nosync.model.places import Sharing
from nosync.model.shards import lower_bounds, shard_of, shard_ranges
from nosync.peers.host import LayerHost, worker_host
from nosync.spark.receipts import Receipt, leave
from nosync.spark.worker import warm_up
from nosync.state.cache import LayerCache
from nosync.state.cover import layer_ranges
from nosync.state.layer import Layer, split_blocks, write_layer
from nosync.state.partial_layer import opened
from nosync.state.search import BloomUse

LAYERS = LayerCache(limit=1024)  # memory maps, one per process: Spark reuses its Python workers
CHUNK_ROWS = 1 << 20
YIELD_ROWS = 1 << 16
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Work:
    """One trace's part of the epochs [lower, upper): the covers of its shards, and where receipts go.

    `writes`: only these ranges are to be had; the others are computed for those who read them. None for all. `receipts_folder`: for
    receipts of what the task may have done for good although it fails. `sharing`: where executors do not see the home, how they find
    layers.
    """

    home: str
    flow: str
    run: str
    trace: TraceName
    lower: Epoch
    upper: Epoch
    shards: int
    kind: Kind
    covers: Covers
    receipts: "Accumulator[list[Receipt]]"
    writes: frozenset[HashRange] | None = None
    receipts_folder: str | None = None
    sharing: Sharing | None = None

    @property
    def host(self) -> LayerHost | None:
        """Where the task is, if layers lie there; None where they lie in the home."""
        return None if self.sharing is None else worker_host(self.sharing)

    def shard(self, batch: pa.RecordBatch) -> Shard:
        """The shard that rows were sent to: the data says so, since partitions are renumbered under a union."""
        first: int = unsigned(batch, HASH)[0].item()
        return shard_of(first, self.shards)

    def held_by(self, shard: Shard) -> HashRange:
        return shard_ranges(self.shards)[shard]

    def is_new(self, shard: Shard) -> bool:
        """Whether no epoch has left anything in the shard."""
        held = self.held_by(shard)
        return not any(known.overlaps(held) for known in self.covers)

    def cover(self, shard: Shard) -> list[Layer]:
        """The layers of a shard as of the previous epoch, newest first. What earlier runs left is verified as it is read."""
        return opened(layer_ranges(self.covers, self.held_by(shard)), self._open)

    def _open(self, info: LayerInfo) -> Layer:
        host = self.host
        layer = LAYERS.open(self.home, info) if host is None else host.open(info, LAYERS.open)
        if f"-{self.run}-" not in info.path.rpartition("/")[2]:
            layer.doubt()
        return layer

    def hand_in(
        self, shard: Shard, rows: int, batch: pa.RecordBatch | None, started: float, bloom: BloomUse | None = None, with_bloom: bool = False
    ) -> None:
        """Writes the layer under a name of this attempt, and reports it. `with_bloom`: with Bloom filters; `bloom`: what those of
        earlier layers did.
        """
        for held in self._written(shard):
            mine = batch if batch is None or self.writes is None else rows_in(batch, held)
            layer = self._write(held, mine, with_bloom) if mine is not None and mine.num_rows else None
            millis = round((time.perf_counter() - started) * 1e3, 1)
            receipt = Receipt(self.trace, shard, self.lower, rows, layer, millis, bloom, held)
            if self.receipts_folder is not None:
                leave(self.receipts_folder, receipt, self.sharing)
            self.receipts.add([receipt])
        warm_up()

    def by_shard(self, change: pa.RecordBatch) -> Iterator[tuple[Shard, pa.RecordBatch]]:
        """The rows of each shard that has some."""
        bounds = np.array(lower_bounds(self.shards), np.uint64)
        numbers = np.searchsorted(bounds, change.column(HASH).to_numpy(), side="right") - 1
        found = np.unique(numbers)
        for shard in found:
            yield Shard(int(shard)), change if len(found) == 1 else change.take(pa.array(np.flatnonzero(numbers == shard)))

    def _written(self, shard: Shard) -> list[HashRange]:
        """The ranges for which there is to be a layer each: the whole shard, or its parts in those to be had."""
        held = self.held_by(shard)
        return [held] if self.writes is None else [held.both(one) for one in sorted(self.writes) if held.overlaps(one)]

    def _write(self, held: HashRange, batch: pa.RecordBatch, with_bloom: bool) -> LayerInfo:
        host = self.host
        layer = write_layer(
            self.home if host is None else host.root,
            layer_path(self.trace, held, self.lower, self.upper, self.run),
            split_blocks(batch),
            flow=self.flow,
            trace=self.trace,
            range=held,
            lower=self.lower,
            upper=self.upper,
            kind=self.kind,
            run=self.run,
            with_bloom=with_bloom,
        )
        return layer if host is None else host.wrote(layer)


def rows_in(batch: pa.RecordBatch, held: HashRange) -> pa.RecordBatch:
    """The rows of a layer to be, which ascend by hash, that lie in a range."""
    ends = np.array([held.lower, held.upper - 1], np.uint64)
    hashes = unsigned(batch, HASH)
    low, high = int(np.searchsorted(hashes, ends[0], side="left")), int(np.searchsorted(hashes, ends[1], side="right"))
    return batch.slice(low, high - low)


class ShardTask:
    """A task over the rows that one shard gets: all at once, and nothing where none come. Each kind says what becomes of them."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        started = time.perf_counter()
        held = [batch for batch in batches if batch.num_rows]
        if held:
            yield from self.process(stacked(held), started)

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        """Writes what is to be kept, and yields the change for whoever reads it. `started` is when the task began, in seconds."""
        raise NotImplementedError


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in pieces of about a million, so that large shards take bounded memory."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            yield stacked(held)
            held, rows = [], 0
    if held:
        yield stacked(held)


def stacked(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(batches[0].num_columns)], schema=batches[0].schema
    )


def column(batch: pa.RecordBatch, name: str, type: pa.DataType) -> pa.Array:
    """A column in the type in which it is kept (Spark labels timestamps with the session's time zone)."""
    array = batch.column(name)
    return array if array.type == type else array.cast(type)


def unsigned(batch: pa.RecordBatch, name: str) -> np.ndarray:
    values: np.ndarray = batch.column(name).to_numpy()
    return values.view(np.uint64)


def emitted(schema: pa.Schema, arrays: list[pa.Array]) -> Iterator[pa.RecordBatch]:
    """Rows on their way back into Spark, in pieces it can handle, with exactly the declared schema."""
    arrays = [array if array.type == field.type else array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
    whole = pa.RecordBatch.from_arrays(arrays, schema=schema)
    for start in range(0, whole.num_rows, YIELD_ROWS):
        yield whole.slice(start, YIELD_ROWS)
