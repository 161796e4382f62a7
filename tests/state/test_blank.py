"""A layer without updates changes nothing, wherever it lies among others."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import Kind
from nosync.state.layer import Layer, open_layer, verify, write_layer
from nosync.state.merge import merge_diffs, merge_upserts, scan, union_schema
from nosync.state.search import lookup, rows_of

HASHES = pa.array([3, 5], pa.uint64())
UPSERTS = pa.record_batch({"_hash": HASHES, "k0": pa.array(["a", "b"]), "n": pa.array([1, 2]), "sum0.0": pa.array([7, 8])})
DIFFS = pa.record_batch({"_hash": HASHES, "_row": HASHES, "c0": pa.array(["a", "b"]), "_count": pa.array([2, 1])})


def opened(home: Path, kind: Kind, lower: int, upper: int, *blocks: pa.RecordBatch) -> Layer:
    facts: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": lower, "upper": upper, "kind": kind, "run": "r"}
    return verify(open_layer(home, write_layer(home, f"{kind}{lower}-{upper}.arrow", blocks, **facts)))


@pytest.mark.parametrize(("kind", "batch"), [("upserts", UPSERTS), ("diffs", DIFFS)])
def test_a_blank_layer_changes_nothing(tmp_path: Path, kind: Kind, batch: pa.RecordBatch) -> None:
    full, above, below = opened(tmp_path, kind, 3, 4, batch), opened(tmp_path, kind, 4, 9, *()), opened(tmp_path, kind, 1, 3)
    cover = [above, full, below]
    assert union_schema([layer.schema for layer in cover], kind).names == batch.schema.names
    assert list(scan(cover, kind)) == list(scan([full], kind)) != []
    merged = merge_upserts(cover, drop_tombstones=True) if kind == "upserts" else merge_diffs(cover)
    assert [block.to_pylist() for block in merged] == [batch.to_pylist()]
    hashes = np.array([3], np.uint64)
    if kind == "upserts":
        assert lookup(cover, hashes, [pa.array(["a"])]).additive("sum0.0").tolist() == [7]
    else:
        found = rows_of(cover, hashes)
        assert found is not None and found.num_rows == 1
        assert rows_of([above], hashes) is None
    assert list(scan([above], kind)) == []
