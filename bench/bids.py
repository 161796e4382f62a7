"""Items and bids on them: the input on which one operator after the other is measured over a small and a large state.

First `items` items in `FILLING` files, then files of the same size whatever the number of items: mostly bids on items drawn evenly,
a few new items. `ids` is the input for duplicates: each file brings ids of which a third has been there before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.inputs import Input, made

SCHEMA = "kind int, id bigint, value bigint"
IDS_SCHEMA = "id bigint, value bigint"
FILLING = 20
TOP = 100


def bids(work: Path, items: int, files: int, rows: int) -> Input:
    """`items` rows of state before the first of `files` files with `rows` rows each."""
    return made(work, f"bids-{items}-{files}x{rows}", "parquet", SCHEMA, lambda: _tables(items, files, rows), _truth)


def ids(work: Path, files: int, rows: int) -> Input:
    """Ids of which two thirds are new."""
    return made(work, f"ids-{files}x{rows}", "parquet", IDS_SCHEMA, lambda: _id_tables(files, rows), _id_truth)


def _tables(items: int, files: int, rows: int) -> Iterator[pa.Table]:
    generator = np.random.default_rng([11, items])
    for known in np.array_split(generator.permutation(items), FILLING):
        yield _table(generator, np.zeros(len(known), np.int32), known)
    new = rows // 10
    for number in range(files):
        kinds = np.repeat(np.array([0, 1], np.int32), [new, rows - new])
        fresh = items + number * new + np.arange(new)
        yield _table(generator, kinds, np.concatenate((fresh, generator.integers(0, items, rows - new))))


def _table(generator: np.random.Generator, kinds: np.ndarray, ids: np.ndarray) -> pa.Table:
    return pa.table({"kind": kinds, "id": ids.astype(np.int64), "value": generator.integers(0, 1 << 40, len(ids))})


def _truth(tables: Iterator[pa.Table]) -> dict[str, Any]:
    table = pa.concat_tables(tables)
    kind, id, value = (table[name].to_numpy() for name in ("kind", "id", "value"))
    return {
        "ids": len(np.unique(id)),
        "rows": len(id),
        "value": int(value.sum()),
        "pairs": int((kind == 1).sum()),
        "bid": int(value[kind == 1].sum()),
        "top": int(np.sort(value)[-TOP:].sum()),
    }


def _id_tables(files: int, rows: int) -> Iterator[pa.Table]:
    fresh = rows - rows // 3
    for number in range(files):
        generator = np.random.default_rng([12, number])
        new = number * fresh + np.arange(fresh)
        old = generator.integers(0, max(number, 1) * fresh, rows - fresh)
        # Neighbouring ids shall not be neighbours in any order that a store might keep.
        scattered = generator.permutation(np.concatenate((new, old))) * 0x9E3779B97F4A7C1
        yield pa.table({"id": scattered.astype(np.int64), "value": generator.integers(0, 1000, rows)})


def _id_truth(tables: Iterator[pa.Table]) -> dict[str, Any]:
    return {"ids": len(np.unique(pa.concat_tables(tables)["id"].to_numpy()))}
