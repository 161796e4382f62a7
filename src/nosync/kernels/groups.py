"""Groups: accumulators by key, as kernels hold them and as layers and blobs store them.

A `Groups` is sorted by hash, a key occurs once. `n` counts the rows of a group. Every other accumulator is either *additive* (an int64
column; a missing column is zero throughout) or *best* (a typed column with nulls: minimum, maximum, bits; a missing column is null
throughout). Both may be sparse, so a group pays only for what its data needed: a sum of small integers is one column, a count of nulls is
none at all until the first null.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.columns import HASH
from nosync.state.canonical import canonical_bytes, rows_equal

Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]
Uint64s = np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(slots=True)
class Groups:
    """Accumulators of some groups; rows of all columns belong together."""

    hashes: Uint64s
    keys: list[pa.Array]
    n: Int64s
    additive: dict[str, Int64s]
    best: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, index: np.ndarray) -> "Groups":
        where = pa.array(index)
        return Groups(
            self.hashes[index],
            [key.take(where) for key in self.keys],
            self.n[index],
            {name: column[index] for name, column in self.additive.items()},
            {name: column.take(where) for name, column in self.best.items()},
        )

    def to_batch(self) -> pa.RecordBatch:
        """The form of an upserts layer. Columns that hold nothing are left out: the result depends on the content alone."""
        columns: dict[str, pa.Array] = {HASH: pa.array(self.hashes)}
        columns.update({f"k{i}": tidy(key) for i, key in enumerate(self.keys)})
        columns["n"] = pa.array(self.n)
        columns.update({name: pa.array(self.additive[name]) for name in sorted(self.additive) if self.additive[name].any()})
        columns.update({name: tidy(self.best[name]) for name in sorted(self.best) if self.best[name].null_count < len(self)})
        return pa.RecordBatch.from_pydict(columns)


def tidy(array: pa.Array) -> pa.Array:
    """The same values in bytes that depend on them alone: no slack of a larger array, nothing left behind in null places.

    Checksums of layers rest on this: two attempts at the same work may have come by the values in different ways.
    """
    if array.null_count == 0 and array.offset == 0 and array.nbytes == array.get_total_buffer_size():
        return array
    return array.take(pa.array(np.arange(len(array))))


def from_batch(batch: pa.RecordBatch, keys: int, best: dict[str, pa.DataType]) -> Groups:
    """The inverse of `Groups.to_batch`; `best` gives the types of the columns that are not additive."""
    found: dict[str, pa.Array] = {}
    additive: dict[str, Int64s] = {}
    for name in batch.schema.names[1 + keys :]:
        if name in best:
            found[name] = batch.column(name)
        elif name != "n":
            additive[name] = batch.column(name).to_numpy()
    return Groups(
        batch.column(0).to_numpy(), [batch.column(1 + i) for i in range(keys)], batch.column("n").to_numpy(), additive, found
    )


def concat(parts: Sequence[Groups]) -> Groups:
    """All rows of the parts, unsorted; missing columns are filled in."""
    if len(parts) == 1:
        return parts[0]
    best = {name: column.type for part in parts for name, column in part.best.items()}
    return Groups(
        np.concatenate([part.hashes for part in parts]),
        [pa.concat_arrays([part.keys[i] for part in parts]) for i in range(len(parts[0].keys))],
        np.concatenate([part.n for part in parts]),
        {
            name: np.concatenate([part.additive.get(name, np.zeros(len(part), np.int64)) for part in parts])
            for name in _ordered(name for part in parts for name in part.additive)
        },
        {
            name: pa.concat_arrays([part.best.get(name, pa.nulls(len(part), type)) for part in parts])
            for name, type in best.items()
        },
    )


def _ordered(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def sort_by_key(hashes: Uint64s, keys: Sequence[pa.Array], chosen: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """An order that brings equal keys together, ascending by hash, and where in it each group starts; of the chosen rows only, if given.

    Equal hashes are confirmed on the key; keys that truly collide are put in the order of their canonical bytes. A key may come as a
    dictionary: then its different values are sorted and compared instead of its rows.
    """
    if len(keys) == 1 and pa.types.is_dictionary(keys[0].type):
        found = _sort_coded(hashes, keys[0], chosen)
        if found is not None:
            return found
    keys = [decoded(key) for key in keys]
    order = np.argsort(hashes) if chosen is None else chosen[np.argsort(hashes[chosen])]
    sorted_hashes = hashes[order]
    same = sorted_hashes[1:] == sorted_hashes[:-1]
    if keys and same.any() and not _equal_neighbours(keys, order, same):
        return _sort_colliding(hashes, keys, np.arange(len(hashes)) if chosen is None else chosen)
    starts = np.flatnonzero(np.concatenate(([True], ~same))) if len(order) else np.zeros(0, np.int64)
    return order, starts


def decoded(array: pa.Array) -> pa.Array:
    """The values themselves, where they come as a dictionary."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _sort_coded(hashes: Uint64s, key: pa.DictionaryArray, chosen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
    """As `sort_by_key`, by the codes of the dictionary; None if values of different codes have one hash (or are the same)."""
    codes = (pc.fill_null(key.indices, len(key.dictionary)) if key.null_count else key.indices).to_numpy()
    if chosen is not None:
        codes, hashes = codes[chosen], hashes[chosen]
    counts = np.bincount(codes)
    used = np.flatnonzero(counts)
    hash_of = np.zeros(len(counts), np.uint64)
    hash_of[codes] = hashes
    used = used[np.argsort(hash_of[used])]
    ascending = hash_of[used]
    if (ascending[1:] == ascending[:-1]).any():
        return None
    narrow = len(used) <= 1 << 16  # numpy sorts 16 bits by radix
    rank = np.zeros(len(counts), np.uint16 if narrow else np.uint32)
    rank[used] = np.arange(len(used))
    order = np.argsort(rank[codes], kind="stable" if narrow else None)
    starts = np.cumsum(counts[used]) - counts[used]
    return order if chosen is None else chosen[order], starts


def _equal_neighbours(keys: Sequence[pa.Array], order: np.ndarray, same: np.ndarray) -> bool:
    """Whether neighbours in the order that have the same hash also have the same key."""
    pairs = np.flatnonzero(same)
    if len(pairs) * 4 < len(order):
        left, right = pa.array(order[pairs]), pa.array(order[pairs + 1])
        return bool(rows_equal([key.take(left) for key in keys], [key.take(right) for key in keys]).all())
    arranged = [key.take(pa.array(order)) for key in keys]
    equal = rows_equal([key.slice(0, len(order) - 1) for key in arranged], [key.slice(1) for key in arranged])
    return bool(equal[pairs].all())


def _sort_colliding(hashes: Uint64s, keys: Sequence[pa.Array], chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rank = pc.rank(canonical_bytes(keys), tiebreaker="dense").to_numpy()
    order = chosen[np.lexsort((rank[chosen], hashes[chosen]))]
    h, r = hashes[order], rank[order]
    fresh = np.concatenate(([True], (h[1:] != h[:-1]) | (r[1:] != r[:-1])))
    return order, np.flatnonzero(fresh)
