"""Rows that come and go, as tables: what is left of them, and how they fall into partitions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.columns import DIFF
from nosync.model.errors import Internal

NULL = "__HIVE_DEFAULT_PARTITION__"  # as Hive and Spark call a partition of null
SAFE = " !$&'()+,-.;@_~"


def added(table: pa.Table) -> pa.Table:
    """Each row that was added as often as it was, without `_diff`. Nothing else is in the table."""
    counts = table.column(DIFF).to_numpy()
    bare = table.drop_columns([DIFF])
    return bare if (counts == 1).all() else bare.take(np.repeat(np.arange(len(counts)), counts))


def consolidated(rows: pa.Table, changes: pa.Table) -> pa.Table:
    """The rows after the changes, which have `_diff` last."""
    every = pa.concat_tables([rows.append_column(DIFF, pa.array(np.ones(rows.num_rows, np.int64))), changes.cast(_with_diff(rows.schema))])
    counts, first = summed(every)
    if (counts < 0).any():
        raise Internal("a row was removed more often than it was there", hint="Begin the folder anew: give the sink another name.")
    kept = counts > 0
    return every.drop_columns([DIFF]).take(np.repeat(first[kept], counts[kept]))


def _with_diff(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(DIFF, pa.int64()))


def summed(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """For each distinct row how often it is there, and where it stands first."""
    names = [f"c{i}" for i in range(table.num_columns - 1)]
    numbered = table.rename_columns([*names, DIFF]).append_column("at", pa.array(np.arange(table.num_rows)))
    if any(pa.types.is_nested(field.type) for field in table.schema):
        return _summed_slowly(numbered)
    found = numbered.group_by(names, use_threads=False).aggregate([(DIFF, "sum"), ("at", "min")])
    return found.column(f"{DIFF}_sum").to_numpy(), found.column("at_min").to_numpy()


def _summed_slowly(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Where values have parts, which Arrow does not group by."""
    counts, first = Counter[str](), dict[str, int]()
    diffs = table.column(DIFF).to_pylist()
    for index, row in enumerate(table.drop_columns([DIFF, "at"]).to_pylist()):
        key = repr([*row.values()])
        counts[key] += diffs[index]
        first.setdefault(key, index)
    return np.array(list(counts.values()), np.int64), np.array(list(first.values()), np.int64)


def partitions(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """By the folder of each partition ("day=2026-05-01/shop=3"), its rows without those columns. Without columns all are one, without a
    folder.
    """
    if not columns:
        yield "", table
        return
    folders = _folders(table, columns)
    bare = table.drop_columns(list(columns))
    for name in sorted(set(folders.to_pylist())):
        yield name, bare.filter(pc.equal(folders, name))


def _folders(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """For each row."""
    said = [[_said(name, value) for value in table.column(name).to_pylist()] for name in columns]
    return pa.array(["/".join(parts) for parts in zip(*said)], pa.string())


def _said(column: str, value: object) -> str:
    return f"{quote(column, safe=SAFE)}={NULL if value is None or value == '' else quote(str(value), safe=SAFE)}"
