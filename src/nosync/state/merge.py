"""Several layers read as one.

Promise: the result is a function of the inputs' contents alone: any order of merging, any block size gives the same rows in the same order.
Memory stays near `block_rows` rows per input, because inputs are cut at common sort keys and merged range by range; only upserts of
one single hash and diffs of one single hash and `_row` are never divided. Called by tasks that merge, by readers of whole
states (`scan`) and by the kernels (`consolidate`).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.columns import COUNT, EPOCH, HASH, ROW
from nosync.model.errors import Internal
from nosync.model.layers import Kind
from nosync.state.canonical import canonical_bytes
from nosync.state.expiry import Expired
from nosync.state.layer import (
    ROWS_IN_GROUP,
    Hashes,
    Index,
    Layer,
    bits,
    equal_rows_at,
    is_additive,
    split_blocks,
    take,
    take_rows,
)

BLOCK_ROWS = 262_144
BLOCK_BYTES = 64 << 20
LAST = 2**64 - 1
Mask = npt.NDArray[np.bool_]
SortKey = tuple[int, int]  # a hash and, among diffs, a `_row`: layers ascend by it


def consolidate(batch: pa.RecordBatch, *, runs: bool = False) -> pa.RecordBatch:
    """Rows in the form of diffs, each payload once with the sum of its counts, zeros dropped, in canonical order.

    `runs` says that the input is a few sorted runs one after another, which are then merged rather than sorted.
    """
    order, starts = _distinct(batch, runs)
    counts = _values(batch, COUNT)[order]
    if len(starts) < len(order):
        counts, order = np.add.reduceat(counts, starts), order[starts]
    kept = counts != 0
    if not kept.all():
        counts, order = counts[kept], order[kept]
    columns = [pa.array(counts) if name == COUNT else take(batch.column(name), order) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def paired(change: pa.RecordBatch, before: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Index, Index]:
    """The rows that occur in either, each once and in canonical order, with its count before and the change of its count.

    Both are consolidated diffs.
    """
    changes = _values(change, COUNT)
    if before is None or before.num_rows == 0 or change.num_rows == 0:
        rows = change if before is None or before.num_rows == 0 else before.select(change.schema.names)
        nothing = np.zeros(rows.num_rows, dtype=np.int64)
        return (rows, nothing, changes) if rows is change else (rows, _values(rows, COUNT), nothing)
    both = concat([change, before], union_schema([change.schema, before.schema], "diffs"), "diffs")
    order, starts = _distinct(both, runs=True)
    fresh = order < change.num_rows
    counts = _values(both, COUNT)[order]
    old, new = (np.add.reduceat(np.where(chosen, counts, 0), starts) for chosen in (~fresh, fresh))
    return take_rows(both, order[starts]), old, new


def _distinct(batch: pa.RecordBatch, runs: bool) -> tuple[Index, Index]:
    """An order that is canonical and brings equal rows together, and where in it each distinct row starts."""
    hashes, rows = _values(batch, HASH), _values(batch, ROW)
    order = _order(hashes, rows, runs)
    hashes, rows = hashes[order], rows[order]
    tied = (hashes[1:] == hashes[:-1]) & (rows[1:] == rows[:-1])
    payload = [batch.column(name) for name in batch.schema.names if name not in (HASH, ROW, COUNT)]
    order, repeated = _break_ties(order, tied, payload)
    return order, _starts(repeated)


def merge_upserts(
    cover: Sequence[Layer], *, drop_tombstones: bool, expired: Expired | None = None, block_rows: int = BLOCK_ROWS
) -> Iterator[pa.RecordBatch]:
    """One row per key, the newest, with the columns of all layers; `cover` is newest first.

    Drop tombstones, and what has expired, only when nothing lies beneath the oldest layer: otherwise deleted keys come back to life.
    """
    schema = union_schema([_plain(layer).schema for layer in cover], "upserts")
    keys = [name for name in schema.names if is_key(name)]
    for pieces in ranges(cover, block_rows):
        batch = concat(pieces, schema, "upserts")
        order = newest_first(_values(batch, HASH), [batch.column(key) for key in keys], len(pieces))
        if drop_tombstones:
            order = order[_values(batch, ROWS_IN_GROUP)[order] != 0]
        if len(pieces) > 1 or len(order) < batch.num_rows:
            batch = take_rows(batch, order)
        yield from split_blocks(_living(batch, expired), block_rows, BLOCK_BYTES)


def newest_rows(pieces: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The living keys of pieces of upserts layers, the newest row of each; pieces come newest layer first, in the order of their blocks."""
    schema = union_schema([piece.schema for piece in pieces], "upserts")
    batch = concat(pieces, schema, "upserts")
    order = newest_first(_values(batch, HASH), [batch.column(name) for name in schema.names if is_key(name)], len(pieces))
    return take_rows(batch, order[_values(batch, ROWS_IN_GROUP)[order] != 0])


def merge_diffs(
    cover: Sequence[Layer], *, expired: Expired | None = None, block_rows: int = BLOCK_ROWS
) -> Iterator[pa.RecordBatch]:
    """Each payload once with the sum of its counts; what sums to 0 is gone, and so is what has expired."""
    schema = union_schema([_plain(layer).schema for layer in cover], "diffs")
    for pieces in ranges(cover, block_rows, divides=not (expired and expired.chained)):
        batch = consolidate(concat(pieces, schema, "diffs"), runs=True)
        yield from split_blocks(_living(batch, expired), block_rows, BLOCK_BYTES)


def _plain(layer: Layer) -> Layer:
    """The layer; refuses a versioned one whose reader did not say as of when (see `versions.open_as_of`)."""
    if layer.schema.get_field_index(EPOCH) >= 0:
        raise Internal(f'layer "{layer.info.path}" holds many epochs and was read as if it held one state')
    return layer


def summed(cover: Sequence[Layer]) -> Iterator[pa.RecordBatch]:
    """What diffs add up to; of one layer just what it has."""
    yield from merge_diffs(cover) if len(cover) > 1 else cover[0].blocks


def _living(batch: pa.RecordBatch, expired: Expired | None) -> pa.RecordBatch:
    if expired is None:
        return batch
    living = expired.living(batch)
    return batch if living.all() else take_rows(batch, np.flatnonzero(living))


def scan(cover: Sequence[Layer], kind: Kind, *, block_rows: int = BLOCK_ROWS) -> Iterator[pa.RecordBatch]:
    """The state the cover stands for, block by block: living keys, or payloads with a positive `_count`."""
    if kind == "upserts":
        yield from merge_upserts(cover, drop_tombstones=True, block_rows=block_rows)
        return
    for block in merge_diffs(cover, block_rows=block_rows):
        positive = _values(block, COUNT) > 0
        block = block if positive.all() else block.filter(pa.array(positive))
        if block.num_rows:
            yield block


def is_key(name: str) -> bool:
    """Whether a column of upserts belongs to the key."""
    return name[0] == "k" and name[1:].isdigit()


def union_schema(schemas: Sequence[pa.Schema], kind: Kind) -> pa.Schema:
    """The columns of all, in an order that readers can rely on: by appearance, upserts led by hash, key and `n`, diffs ended by `_count`.

    A column that some lack is nullable unless it is additive. No column may change its type.
    """
    fields: dict[str, pa.Field] = {}
    for field in (field for schema in schemas for field in schema):
        known = fields.setdefault(field.name, field)
        if known.type != field.type:
            raise Internal(f'column "{field.name}" is {known.type} in one layer and {field.type} in another')
        if field.nullable:
            fields[field.name] = field
    for name, field in fields.items():
        if not _is_zero_when_missing(field, kind) and any(schema.get_field_index(name) < 0 for schema in schemas):
            fields[name] = field.with_nullable(True)
    return pa.schema(sorted(fields.values(), key=lambda field: _column_rank(field.name, kind)))


def concat(pieces: Sequence[pa.RecordBatch], schema: pa.Schema, kind: Kind) -> pa.RecordBatch:
    """The pieces, at least one, after one another under `schema`: a missing additive column is 0, any other missing column null."""
    columns = []
    for field in schema:
        parts = [_column(piece, field, kind) for piece in pieces]
        columns.append(parts[0] if len(parts) == 1 else pa.concat_arrays(parts))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(slots=True)
class _Cursor:
    """How far a layer has been read, in steps of about one block."""

    layer: Layer
    step: int
    starts: Index
    divides: bool
    position: int = 0

    def horizon(self) -> SortKey | None:
        """The sort key one step ahead; None when the step reaches the end."""
        ahead = self.position + self.step
        if ahead >= self.layer.rows:
            return None
        block = int(np.searchsorted(self.starts, ahead - 1, side="right")) - 1
        return self._sort_key(block, ahead - 1 - int(self.starts[block]))

    def advance(self, cut: SortKey | None) -> list[pa.RecordBatch]:
        """The rows not yet read whose sort key is at most `cut`."""
        start, stop = self.position, self._rank(cut)
        self.position = stop
        pieces = []
        for block, first in zip(self.layer.blocks, self.starts.tolist(), strict=True):
            low, high = max(start, first), min(stop, first + block.num_rows)
            if low < high:
                pieces.append(block.slice(low - first, high - low))
        return pieces

    def _sort_key(self, block: int, row: int) -> SortKey:
        rows = self._rows(block)
        return int(self.layer.hashes(block)[row]), LAST if rows is None else int(rows[row])

    def _rows(self, block: int) -> Hashes | None:
        column = self.layer.column(block, ROW) if self.divides else None
        return None if column is None else column.to_numpy()

    def _rank(self, cut: SortKey | None) -> int:
        if cut is None:
            return self.layer.rows
        first, last = _span(self.layer.firsts, cut[0])  # blocks that begin with the hash of the cut, before or behind it
        block = first + bisect_right(range(first, last), cut, key=lambda block: self._sort_key(block, 0)) - 1
        if block < 0:
            return 0
        rows = self._rows(block)
        low, high = _span(self.layer.hashes(block), cut[0])
        if rows is not None:
            high = low + int(np.searchsorted(rows[low:high], np.uint64(cut[1]), side="right"))
        return int(self.starts[block]) + high


def _span(hashes: Hashes, hash: int) -> tuple[int, int]:
    """Where the hash begins and ends."""
    return int(np.searchsorted(hashes, np.uint64(hash), side="left")), int(np.searchsorted(hashes, np.uint64(hash), side="right"))


def _cursor(layer: Layer, block_rows: int, divides: bool) -> _Cursor:
    ends = np.cumsum([0] + [block.num_rows for block in layer.blocks], dtype=np.int64)
    by_bytes = BLOCK_BYTES * layer.rows // max(1, layer.info.bytes)  # wide rows: fewer at a time
    return _Cursor(layer, max(1, min(block_rows, by_bytes)), ends[:-1], divides)


def ranges(cover: Sequence[Layer], block_rows: int, divides: bool = True) -> Iterator[list[pa.RecordBatch]]:
    """Slices of all layers between common sort keys, ascending; in each list the newest layer's come first.

    `divides`: rows of one hash may come in several of them.
    """
    cursors = [_cursor(layer, block_rows, divides) for layer in cover if layer.rows]
    while any(cursor.position < cursor.layer.rows for cursor in cursors):
        cut = min((ahead for cursor in cursors if (ahead := cursor.horizon()) is not None), default=None)
        yield [piece for cursor in cursors for piece in cursor.advance(cut)]


def newest_first(hashes: Hashes, keys: Sequence[pa.Array], pieces: int) -> Index:
    """Positions of the newest row of each key, ordered by hash and, where hashes collide, by canonical bytes."""
    order: Index = np.arange(len(hashes)) if pieces == 1 else np.argsort(hashes, kind="stable")
    hashes = hashes if pieces == 1 else hashes[order]
    order, repeated = _break_ties(order, hashes[1:] == hashes[:-1], keys)
    return order[_starts(repeated)] if repeated.any() else order


def _order(hashes: Hashes, rows: Hashes, runs: bool) -> Index:
    """Positions ordered by hash, then row; cheap for sorted runs and for hashes that are mostly distinct."""
    order: Index = np.argsort(hashes, kind="stable" if runs else None)
    ordered = hashes[order]
    tied = ordered[1:] == ordered[:-1]
    if tied.any():
        members = np.flatnonzero(np.append(tied, False) | np.insert(tied, 0, False))
        among = order[members]
        order[members] = among[np.lexsort((rows[among], ordered[members]))]
    return order


def _break_ties(order: Index, tied: Mask, columns: Sequence[pa.Array]) -> tuple[Index, Mask]:
    """Finish an order in which only neighbours marked `tied` are still open, and say which rows repeat the one before.

    Equal rows keep their order. Canonical bytes are computed for collisions only.
    """
    repeated = tied.copy()
    pairs = np.flatnonzero(tied)
    repeated[pairs] = equal_rows_at(columns, order[pairs], columns, order[pairs + 1])
    if repeated[pairs].all():
        return order, repeated
    run = np.insert(np.cumsum(~tied), 0, 0)
    members = np.flatnonzero(np.isin(run, run[pairs[~repeated[pairs]]]))
    among = order[members]
    contents = canonical_bytes([take(column, among) for column in columns])
    table = pa.table({"run": run[members], "bytes": contents, "position": among})
    order = order.copy()
    order[members] = among[pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()]
    repeated[pairs] = equal_rows_at(columns, order[pairs], columns, order[pairs + 1])
    return order, repeated


def _starts(repeated: Mask) -> Index:
    return np.flatnonzero(np.insert(~repeated, 0, True))


def _values(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    values = bits(batch.column(name))
    if values is None:
        raise Internal(f'column "{name}" holds nulls or is not an integer column')
    return values


def _column(piece: pa.RecordBatch, field: pa.Field, kind: Kind) -> pa.Array:
    index = piece.schema.get_field_index(field.name)
    if index >= 0:
        return piece.column(index)
    if _is_zero_when_missing(field, kind):
        return pa.array(np.zeros(piece.num_rows, dtype=np.int64))
    return pa.nulls(piece.num_rows, field.type)


def _is_zero_when_missing(field: pa.Field, kind: Kind) -> bool:
    return kind == "upserts" and is_additive(field)


def _column_rank(name: str, kind: Kind) -> int:
    if kind == "diffs":  # canonical bytes depend on the order of the payload: it is left alone
        return int(name == COUNT)
    return 0 if name == HASH else 1 if is_key(name) else 2 if name == ROWS_IN_GROUP else 3
