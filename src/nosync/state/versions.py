"""Versioned layers: many epochs in one file, each of which can still be read.

    _epoch int64   in layers with versions: the first kept epoch in which the row counts

A layer for epochs [lower, upper) has one version for each epoch within that was kept when it was made, and one for its last. Of upserts it
has a key once a version, with the newest value of that version; of diffs a payload once a version, with the sum of its counts. So what
happened between two kept epochs is collapsed, and merging again with fewer of them collapses more. Nothing is dropped: what lies
beneath such a layer may be asked for too.

Promise: the result is a function of the inputs' contents and of the kept epochs alone.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nosync.model.columns import COUNT, EPOCH, HASH
from nosync.model.identifiers import Epoch
from nosync.model.layers import Kind, LayerInfo
from nosync.state.layer import Layer, bits, open_layer, split_blocks, take_rows, verify
from nosync.state.merge import BLOCK_BYTES, BLOCK_ROWS, concat, consolidate, is_key, newest_first, ranges, union_schema

Epochs = npt.NDArray[np.int64]


def open_as_of(home: Path | str, info: LayerInfo) -> Layer:
    """The layer as a cover takes it: a versioned one as of its last epoch, or as of the one before `until`. That one is read and verified
    here, as a whole, and held in memory.
    """
    layer = open_layer(home, info)
    return collapsed(verify(layer), info.end) if info.versions else layer


def collapsed(layer: Layer, until: Epoch) -> Layer:
    """A versioned layer without versions, for its epochs before `until`."""
    kind = layer.info.kind
    schema = layer.schema.remove(layer.schema.get_field_index(EPOCH))
    blocks = [block for pieces in ranges([layer], BLOCK_ROWS) for block in _as_of(pieces, layer.schema, kind, until)]
    return Layer.in_memory(layer, schema, blocks)


def _as_of(pieces: list[pa.RecordBatch], schema: pa.Schema, kind: Kind, until: Epoch) -> list[pa.RecordBatch]:
    batch = concat(pieces, schema, kind)
    batch = take_rows(batch, np.flatnonzero(_epochs(batch) < until))
    if kind == "upserts":
        return split_blocks(_newest(batch, [name for name in schema.names if is_key(name)]).drop_columns([EPOCH]))
    return split_blocks(consolidate(batch.drop_columns([EPOCH]), runs=True))


def merge_versions(layers: Sequence[Layer], versions: Epochs, *, block_rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
    """The rows of neighbours, newest first, by version. `versions` ascend and end with the last epoch of the newest layer."""
    kind = layers[0].info.kind
    tagged = [_tagged(layer) for layer in layers]
    schema = union_schema([layer.schema for layer in tagged], kind)
    for pieces in ranges(tagged, block_rows):
        batch = concat(pieces, schema, kind)
        yield from split_blocks(_by_version(batch, versions, kind), block_rows, BLOCK_BYTES)


def versioned_schema(layers: Sequence[Layer]) -> pa.Schema:
    """Of what `merge_versions` gives."""
    return union_schema([_tagged(layer).schema for layer in layers], layers[0].info.kind)


def _by_version(batch: pa.RecordBatch, versions: Epochs, kind: Kind) -> pa.RecordBatch:
    counts_in = pa.array(versions[np.searchsorted(versions, _epochs(batch))])
    if kind == "upserts":
        ordered = batch.append_column("_version", counts_in)
        found = _newest(ordered, ["_version", *(name for name in batch.schema.names if is_key(name))])
        return _with_epochs(found.drop_columns(["_version"]), found.column("_version"))
    return consolidate(_with_epochs(batch, counts_in), runs=True)


def _newest(batch: pa.RecordBatch, keys: Sequence[str]) -> pa.RecordBatch:
    """Of rows with equal keys that of the latest epoch."""
    batch = take_rows(batch, np.argsort(-_epochs(batch), kind="stable"))
    hashes = batch.column(HASH).to_numpy()
    return take_rows(batch, newest_first(hashes, [batch.column(key) for key in keys], pieces=2))


def _tagged(layer: Layer) -> Layer:
    """With the epoch of each row."""
    if layer.info.versions:
        return layer
    last, schema = layer.info.upper - 1, layer.schema
    place = len(schema) - (schema.names[-1] == COUNT)
    field = pa.field(EPOCH, pa.int64(), nullable=False)
    blocks = [block.add_column(place, field, pa.array(np.full(block.num_rows, last))) for block in layer.verified()]
    return Layer.in_memory(layer, schema.insert(place, field), blocks)


def _with_epochs(batch: pa.RecordBatch, epochs: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(EPOCH), batch.schema.field(EPOCH), epochs)


def _epochs(batch: pa.RecordBatch) -> Epochs:
    found: Epochs = bits(batch.column(EPOCH))  # type: ignore[assignment]
    return found
