"""join: the change of a join's result from the changes of its two sides.

Both sides are kept as diffs, sorted by the hash of the join key. Work is in proportion to the change and what it meets: rows of the
other side are read for the keys of the change only, and each pair that may have changed is looked at once. A null in the key meets nothing;
such rows are not kept.

A change is emitted in *parts*: pairs (or, where only the left row counts, its matched rows), rows of the left without a match, rows of
the right without one. With d for a change and 0, 1 for before and after, a pair's weight is dl * r0 + l1 * dr, a row's weight for
having no match l1 * (no match after) - l0 * (no match before). Both hold where l0 was not read because nothing on the other side changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels.groups import sort_by_key
from nosync.model.columns import HASH
from nosync.model.errors import Failed
from nosync.state.layer import Layer
from nosync.state.merge import consolidate, paired
from nosync.state.search import rows_of

How = Literal["inner", "left", "right", "full", "single", "semi", "anti", "existence"]
Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
MATCHED, LEFT, RIGHT = 0, 1, 2  # kinds of parts
PAIRS = 1 << 20  # emitted at a time
TOO_MANY = "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used as an expression."


@dataclass(frozen=True, slots=True)
class Joining:
    """What to join. `left` and `right` name the key columns of the sides.

    `alone`: rows of these sides are emitted as they change, matched or not; whoever decides later which pairs count needs them.
    """

    how: How
    left: tuple[str, ...]
    right: tuple[str, ...]
    alone: tuple[int, ...] = ()

    @property
    def pairs(self) -> bool:
        return self.how not in ("semi", "anti", "existence")

    @property
    def kept_left(self) -> bool:
        """Whether left rows without a match matter."""
        return self.how in ("left", "full", "single", "anti", "existence") or LEFT in self.alone

    @property
    def kept_right(self) -> bool:
        return self.how in ("right", "full") or RIGHT in self.alone


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """Some of the change: rows of `Joined.left` and `Joined.right` that belong together (None: no row of that side), and their weights."""

    kind: int
    left: Ints | None
    right: Ints | None
    weights: Ints


@dataclass(slots=True)
class _Side:
    """The rows of a side that the change concerns: their counts before, the change of them, and the number of their key."""

    rows: pa.RecordBatch
    before: Ints
    change: Ints
    group: Ints

    @property
    def after(self) -> Ints:
        return self.before + self.change

    def total(self, counts: Ints, groups: int) -> Ints:
        """How many rows each key has."""
        return np.bincount(self.group, weights=counts, minlength=groups).astype(np.int64)


@dataclass(slots=True)
class Joined:
    """`layers`: what each side keeps. `parts` are the change, by rows of `left` and `right`."""

    layers: tuple[pa.RecordBatch, pa.RecordBatch]
    left: pa.RecordBatch
    right: pa.RecordBatch
    parts: Iterator[JoinedRows]


def join(spec: Joining, covers: tuple[Sequence[Layer], Sequence[Layer]], changes: tuple[pa.RecordBatch, pa.RecordBatch]) -> Joined:
    """`changes` of left and right have the form of diffs layers, unsorted."""
    fresh = consolidate(changes[0]), consolidate(changes[1])
    layers = _with_key(fresh[0], spec.left), _with_key(fresh[1], spec.right)
    fresh = fresh[0] if spec.kept_left else layers[0], fresh[1] if spec.kept_right else layers[1]
    touched = _hashes(layers[0]), _hashes(layers[1])
    right = paired(fresh[1], rows_of(covers[1], np.union1d(*touched) if _needs_any_right(spec) else touched[0]))
    wanted: np.ndarray = np.union1d(*touched) if spec.how in ("right", "full") else touched[1] if spec.pairs else _flipped(spec, right)
    left = paired(fresh[0], rows_of(covers[0], wanted))
    meeting = _Meeting(spec, *_numbered(spec, left, right))
    meeting.check()
    return Joined(layers, left[0], right[0], meeting.parts())


def _needs_any_right(spec: Joining) -> bool:
    """Whether it matters if a key has rows on the right at all."""
    return spec.how in ("left", "full", "single", "semi", "anti", "existence")


def _hashes(batch: pa.RecordBatch) -> np.ndarray:
    hashes: np.ndarray = np.unique(batch.column(HASH).to_numpy())
    return hashes


def _matchable(batch: pa.RecordBatch, keys: tuple[str, ...]) -> np.ndarray:
    """Rows without a null in the key."""
    valid = np.ones(batch.num_rows, bool)
    for name in keys:
        if batch.column(name).null_count:
            valid &= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
    return valid


def _with_key(batch: pa.RecordBatch, keys: tuple[str, ...]) -> pa.RecordBatch:
    known = _matchable(batch, keys)
    return batch if known.all() else batch.filter(pa.array(known))


def _flipped(spec: Joining, right: tuple[pa.RecordBatch, Ints, Ints]) -> np.ndarray:
    """Hashes of keys that have got their first row on the right, or lost their last: only there do rows kept on the left change sides."""
    rows, before, change = right
    hashes: np.ndarray = rows.column(HASH).to_numpy()
    if not len(hashes):
        return hashes
    order, starts = sort_by_key(hashes, [rows.column(name) for name in spec.right])
    was = np.add.reduceat(before[order], starts) > 0
    now = np.add.reduceat((before + change)[order], starts) > 0
    return np.unique(hashes[order[starts]][was != now])


def _numbered(
    spec: Joining, left: tuple[pa.RecordBatch, Ints, Ints], right: tuple[pa.RecordBatch, Ints, Ints]
) -> tuple[_Side, _Side, int]:
    """Both sides with their keys numbered alike, and the number of keys. Keys with a null get numbers that the other side does not have."""
    hashes = np.concatenate((left[0].column(HASH).to_numpy(), right[0].column(HASH).to_numpy()))
    keys = [_stacked(left[0].column(one), right[0].column(other)) for one, other in zip(spec.left, spec.right, strict=True)]
    order, starts = sort_by_key(hashes, keys)
    number = np.empty(len(order), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    cut, groups = left[0].num_rows, len(starts)
    number[:cut][~_matchable(left[0], spec.left)] = groups
    number[cut:][~_matchable(right[0], spec.right)] = groups + 1
    return _Side(*left, number[:cut]), _Side(*right, number[cut:]), groups + 2


def _stacked(left: pa.Array, right: pa.Array) -> pa.Array:
    return pa.concat_arrays([left, right if right.type == left.type else right.cast(left.type)])


@dataclass
class _Meeting:
    spec: Joining
    left: _Side
    right: _Side
    groups: int

    @cached_property
    def right_rows(self) -> tuple[Ints, Ints]:
        """How many rows each key has on the right, before and after."""
        return self.right.total(self.right.before, self.groups), self.right.total(self.right.after, self.groups)

    @cached_property
    def left_rows(self) -> tuple[Ints, Ints]:
        return self.left.total(self.left.before, self.groups), self.left.total(self.left.after, self.groups)

    def check(self) -> None:
        """Refuses a second row where only one may be."""
        if self.spec.how == "single" and bool(((self.right_rows[1] > 1) & (self.left_rows[1] > 0)).any()):
            raise Failed(TOO_MANY)

    def parts(self) -> Iterator[JoinedRows]:
        how = self.spec.how
        if self.spec.pairs:
            yield from self._pairs()
        if how in ("semi", "existence"):
            yield from _parts(MATCHED, _weights(self.left, self.right_rows, matched=True))
        if how in ("left", "full", "single", "anti", "existence"):
            yield from _parts(LEFT, _weights(self.left, self.right_rows, matched=False))
        if how in ("right", "full"):
            yield from _parts(RIGHT, _weights(self.right, self.left_rows, matched=False))
        if LEFT in self.spec.alone:
            yield from _parts(LEFT, self.left.change)
        if RIGHT in self.spec.alone:
            yield from _parts(RIGHT, self.right.change)

    def _pairs(self) -> Iterator[JoinedRows]:
        """Changed rows of the left with all they meet, then the others with changed rows of the right: no pair twice."""
        changed = self.left.change != 0
        everything, fresh = np.arange(len(self.right.group)), np.flatnonzero(self.right.change)
        for ours, theirs in ((np.flatnonzero(changed), everything), (np.flatnonzero(~changed), fresh)):
            for left, right in _products(ours, self.left.group, theirs, self.right.group, self.groups):
                weights = self.left.change[left] * self.right.before[right] + self.left.after[left] * self.right.change[right]
                real = np.flatnonzero(weights)
                if len(real):
                    yield JoinedRows(MATCHED, left[real], right[real], weights[real])


def _weights(side: _Side, others: tuple[Ints, Ints], matched: bool) -> Ints:
    """How often each row is to be emitted for having (or not having) a match, now less before."""
    was, now = ((rows > 0) == matched for rows in others)
    weights: Ints = side.after * now[side.group] - side.before * was[side.group]
    return weights


def _parts(kind: int, weights: Ints) -> Iterator[JoinedRows]:
    rows = np.flatnonzero(weights)
    if len(rows):
        left, right = (None, rows) if kind == RIGHT else (rows, None)
        yield JoinedRows(kind, left, right, weights[rows])


def _products(left: Ints, left_group: Ints, right: Ints, right_group: Ints, groups: int) -> Iterator[tuple[Ints, Ints]]:
    """All combinations of rows with the same key, about `PAIRS` at a time."""
    right = right[np.argsort(right_group[right], kind="stable")]
    counts = np.bincount(right_group[right], minlength=groups)
    starts = np.cumsum(counts) - counts
    lengths = counts[left_group[left]]
    left, lengths = left[lengths > 0], lengths[lengths > 0]
    pieces = (np.cumsum(lengths) - lengths) // PAIRS
    for piece in np.split(np.arange(len(left)), np.flatnonzero(np.diff(pieces)) + 1):
        if len(piece):
            some, many = left[piece], lengths[piece]
            skipped = np.cumsum(many) - many
            indices = np.repeat(starts[left_group[some]] - skipped, many) + np.arange(int(many.sum()))
            yield np.repeat(some, many), right[indices]


def rows_at(batch: pa.RecordBatch, name: str, index: Ints | None, rows: int) -> pa.Array:
    """A column at the rows of a part; null where the part has no row of this side."""
    column = batch.column(name)
    return pa.nulls(rows, column.type) if index is None else pc.take(column, pa.array(index))
