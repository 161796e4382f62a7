"""Rows that leave files which never change: which files have them, and which of their rows go.

A row is known by its canonical bytes: those of its key, or of all its columns where there is no key. Pure.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Failed
from nosync.sinks.rows import added
from nosync.state.canonical import canonical_bytes

Rows = npt.NDArray[np.int64]


def row_ids(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """What each row is known by: one plain column as it is, which is quicker, else its canonical bytes."""
    if len(columns) == 1 and _is_plain(rows.schema.field(columns[0]).type):
        return _whole(rows.column(columns[0]))
    return canonical(rows, columns)


def canonical(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    return canonical_bytes([_whole(rows.column(name)) for name in columns], rows.num_rows)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind))


class Leaving:
    """The rows that an epoch takes out of a table. With a key, all that have one of the keys; without, as many copies as were removed."""

    def __init__(self, changes: pa.Table, key: Sequence[str], what: str) -> None:
        """`changes` have `_diff`, and maybe `_epoch`."""
        self.columns = tuple(key) or tuple(name for name in changes.column_names if name not in (DIFF, EPOCH))
        self.what, self.keyed = what, bool(key)
        diff = changes.column(DIFF).to_numpy()
        ids = row_ids(changes, self.columns)
        self.values = {name: pc.unique(changes.column(name)).sort() for name in self.columns if _ranged(changes.column(name))}
        if self.keyed:
            _check_distinct(ids.filter(pa.array(diff > 0)), diff[diff > 0], key, what)
            self.ids, self.left = pc.unique(ids), None
        else:
            summed = pa.table({"id": ids, "n": -diff}).group_by("id").aggregate([("n", "sum")])
            gone = summed.filter(pc.greater(summed.column("n_sum"), 0))
            self.ids = gone.column("id").combine_chunks()
            self.left = gone.column("n_sum").to_numpy().copy()

    @property
    def none(self) -> bool:
        return not len(self.ids)

    def may_be_within(self, ranges: Mapping[str, tuple[Any, Any]]) -> bool:
        """Whether a file can have such rows, by the least and greatest values of its columns, as far as they are known."""
        return all(self._meets(name, *ranges[name]) for name in self.columns if name in ranges and name in self.values)

    def _meets(self, name: str, low: Any, high: Any) -> bool:
        values = self.values[name]
        place = bisect_left(values, low, key=lambda value: value.as_py())
        return place < len(values) and bool(values[place].as_py() <= high)

    def positions_in(self, ids: pa.Array) -> Rows:
        """Where the rows stand that go, of one file. Each file is asked once."""
        found = pc.index_in(ids, value_set=self.ids)
        places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        if self.left is None or not len(places):
            return places
        which = found.take(pa.array(places)).to_numpy()
        order = np.argsort(which, kind="stable")
        ordered = which[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        nth = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
        going = order[nth < self.left[ordered]]
        np.subtract.at(self.left, which[going], 1)
        return np.sort(places[going])

    def check_all_found(self) -> None:
        """After all files: a row that is not there cannot leave."""
        if self.left is not None and self.left.any():
            words = f"{self.what} lacks {int(self.left.sum())} rows that the query's result loses"
            raise Failed(words, hint="Somebody changed the table, or it began before the view did: write to an empty one.")


def _ranged(column: pa.ChunkedArray) -> bool:
    """Whether ranges say for certain in which files a value can be: whole numbers and days, without null."""
    return (pa.types.is_integer(column.type) or pa.types.is_date(column.type)) and not column.null_count


def arriving(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows that come, as often as they do; what comes and goes at once does neither where there is no key."""
    if key:
        return added(changes.filter(pc.greater(changes.column(DIFF), 0)))
    columns = [name for name in changes.column_names if name != DIFF]
    ids = row_ids(changes, columns)
    numbered = pa.table({"id": ids, "n": changes.column(DIFF), "at": np.arange(changes.num_rows)})
    summed = numbered.group_by("id", use_threads=False).aggregate([("n", "sum"), ("at", "min")])
    kept = summed.filter(pc.greater(summed.column("n_sum"), 0))
    rows = changes.drop_columns([DIFF]).take(kept.column("at_min").combine_chunks())
    return added(rows.append_column(DIFF, kept.column("n_sum")))


def without(rows: pa.Table, going: Rows) -> pa.Table:
    kept = np.ones(rows.num_rows, bool)
    kept[going] = False
    return rows.filter(pa.array(kept))


def _check_distinct(ids: pa.Array, counts: npt.NDArray[np.int64], key: Sequence[str], what: str) -> None:
    if len(pc.unique(ids)) != counts.sum():
        raise Failed(f"{what}: key=[{', '.join(key)}] does not tell the rows of the query's result apart", hint="Name all columns that do.")
