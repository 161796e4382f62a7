"""Merging: several layers are worth what a dictionary of the same updates is worth, in any grouping, with any block size."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.model.errors import Internal
from nosync.model.hash_range import ALL_HASHES
from nosync.state.canonical import canonical_bytes
from nosync.state.expiry import Expired
from nosync.state.layer import Layer, open_layer, split_blocks, write_layer
from nosync.state.merge import concat, consolidate, merge_diffs, merge_upserts, scan, union_schema

NAN = float("nan")
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "ints": (pa.int64(), list(range(40))),
    "nulls": (pa.int32(), [None, *range(30)]),
    "floats": (pa.float64(), [None, NAN, 0.0, -0.0, 1.5, -2.5, float("inf")]),
    "strings": (pa.string(), [None, "", "a", "aa", "b", "ß", "z" * 40]),
    "structs": (pa.struct([("x", pa.int8()), ("y", pa.string())]), [None, {"x": 1, "y": None}, {"x": None, "y": None}, {"x": 1, "y": "q"}]),
    "lists": (pa.list_(pa.float32()), [None, [], [None], [NAN], [1.0, 2.0], [1.0]]),
}
Rows = dict[bytes, tuple[Any, ...]]  # hash, n, sum and minimum by key
FEW = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)


def bytes_of(columns: list[pa.Array]) -> list[bytes]:
    found: list[bytes] = canonical_bytes(columns).to_pylist()
    return found


def open_blocks(home: Path, kind: str, epoch: int, batch: pa.RecordBatch, block_rows: int, upper: int | None = None) -> Layer:
    upper = upper or epoch + 1
    facts: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": epoch, "upper": upper, "kind": kind, "run": "r"}
    path = f"{epoch}-{upper}.arrow"
    return open_layer(home, write_layer(home, path, split_blocks(batch, block_rows), schema=batch.schema, **facts))


def random_upserts(random: np.random.Generator, kind: str, hash_of: dict[bytes, int]) -> tuple[pa.RecordBatch, Rows]:
    """A layer with random keys and sparse columns, and the same as a dictionary."""
    type_, universe = KEYS[kind]
    chosen = random.choice(len(universe), int(random.integers(0, len(universe) + 1)), replace=False)
    keys = pa.array([universe[i] for i in chosen], type_)
    names = bytes_of([keys]) if len(keys) else []
    order = sorted(range(len(names)), key=lambda i: (hash_of[names[i]], names[i]))
    sums, best = random.integers(-9, 9, len(names)), random.integers(0, 99, len(names)).tolist()
    best = [None if random.random() < 0.2 else value for value in best]
    count = random.integers(0, 3, len(names))
    columns = {"_hash": pa.array([hash_of[names[i]] for i in order], pa.uint64()), "k0": keys.take(pa.array(order, pa.int64())),
               "n": pa.array(count[order])}  # fmt: skip
    with_sum, with_best = random.random() < 0.7, random.random() < 0.7
    if with_sum:
        columns["sum0.0"] = pa.array(sums[order])
    if with_best:
        columns["min0"] = pa.array([best[i] for i in order], pa.int64())
    model = {
        name: (hash_of[name], int(count[i]), int(sums[i]) if with_sum else 0, best[i] if with_best else None)
        for i, name in enumerate(names)
    }
    return pa.record_batch(columns), model


def hashes_for(random: np.random.Generator, kind: str, collide: bool) -> dict[bytes, int]:
    type_, universe = KEYS[kind]
    names = bytes_of([pa.array(universe, type_)])
    drawn = random.choice(FEW, len(names)) if collide else random.integers(0, 2**64, len(names), dtype=np.uint64)
    return dict(zip(names, drawn.tolist(), strict=True))


def upserts_in(blocks: Iterable[pa.RecordBatch]) -> Rows:
    """Rows by key; fails when a key occurs twice or rows are out of order."""
    found: Rows = {}
    places = []
    for block in blocks:
        rows = block.to_pylist()
        for name, row in zip(bytes_of([block.column("k0")]), rows, strict=True):
            assert name not in found
            found[name] = (row["_hash"], row["n"], row.get("sum0.0", 0), row.get("min0"))
            places.append((row["_hash"], name))
    assert places == sorted(places)
    return found


@pytest.mark.parametrize("collide", [False, True], ids=["distinct hashes", "colliding hashes"])
@pytest.mark.parametrize("kind", list(KEYS))
@pytest.mark.parametrize("seed", range(25))
def test_merged_upserts_equal_a_dictionary_of_the_newest(tmp_path: Path, seed: int, kind: str, collide: bool) -> None:
    random = np.random.default_rng([seed, len(kind), collide])
    hash_of = hashes_for(random, kind, collide)
    layers, model = [], {}
    for epoch in range(1, int(random.integers(2, 7))):
        batch, updates = random_upserts(random, kind, hash_of)
        layers.insert(0, open_blocks(tmp_path, "upserts", epoch, batch, int(random.integers(1, 9))))
        model |= updates
    block_rows = int(random.integers(1, 20))
    blocks = list(merge_upserts(layers, drop_tombstones=False, block_rows=block_rows))
    assert upserts_in(blocks) == model
    assert all(0 < block.num_rows <= block_rows for block in blocks)
    living = {name: row for name, row in model.items() if row[1]}
    assert upserts_in(merge_upserts(layers, drop_tombstones=True, block_rows=block_rows)) == living
    assert upserts_in(scan(layers, "upserts", block_rows=block_rows)) == living


@pytest.mark.parametrize("seed", range(60))
def test_merging_in_stages_equals_merging_at_once(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    hash_of = hashes_for(random, "strings", collide=True)
    batches = [random_upserts(random, "strings", hash_of)[0] for _ in range(6)]
    layers = [open_blocks(tmp_path, "upserts", 6 - number, batch, 2) for number, batch in enumerate(batches)]
    start = int(random.integers(0, 4))
    stop = start + int(random.integers(2, 4))
    inputs = layers[start:stop]
    merged = list(merge_upserts(inputs, drop_tombstones=False, block_rows=3))
    middle = pa.Table.from_batches(merged, union_schema([layer.schema for layer in inputs], "upserts")).combine_chunks().to_batches()
    staged = [open_blocks(tmp_path, "upserts", 50, batch, 3, upper=60) for batch in middle]
    at_once = upserts_in(merge_upserts(layers, drop_tombstones=True))
    assert upserts_in(merge_upserts(layers[:start] + staged + layers[stop:], drop_tombstones=True)) == at_once


def test_a_global_aggregate_has_no_key_columns(tmp_path: Path) -> None:
    rows = [pa.record_batch({"_hash": pa.array([42], pa.uint64()), "n": [n], "sum0.0": [n * 10]}) for n in (1, 2)]
    layers = [open_blocks(tmp_path, "upserts", 2 - number, batch, 9) for number, batch in enumerate(rows[::-1])]
    assert [block.to_pylist() for block in merge_upserts(layers, drop_tombstones=True)] == [[{"_hash": 42, "n": 2, "sum0.0": 20}]]


def test_merging_nothing_gives_nothing(tmp_path: Path) -> None:
    empty = open_blocks(tmp_path, "upserts", 1, pa.record_batch({"_hash": pa.array([], pa.uint64()), "n": pa.array([], pa.int64())}), 9)
    assert list(merge_upserts([], drop_tombstones=True)) == [] and list(merge_diffs([])) == []
    assert list(merge_upserts([empty, empty], drop_tombstones=True)) == []


def test_a_range_holds_about_one_block_of_each_input(tmp_path: Path) -> None:
    hashes = [np.sort(np.random.default_rng(seed).integers(0, 2**64, 10_000, dtype=np.uint64)) for seed in range(3)]
    batches = [pa.record_batch({"_hash": pa.array(part), "k0": part.view(np.int64), "n": np.ones(10_000, np.int64)}) for part in hashes]
    layers = [open_blocks(tmp_path, "upserts", 3 - number, batch, 700) for number, batch in enumerate(batches)]
    blocks = merge_upserts(layers, drop_tombstones=True, block_rows=100)
    assert sum(block.num_rows for block in blocks) == 30_000
    ranges = [block.num_rows for block in merge_upserts(layers, drop_tombstones=True, block_rows=1000)]
    assert max(ranges) <= 1000 and min(ranges[:-3]) >= 400


PAYLOADS = [(word, number) for word in (None, "", "a", "b") for number in (None, NAN, 0.0, -0.0, 1.0)]


def random_diffs(random: np.random.Generator, rows: int, collide: bool) -> pa.RecordBatch:
    """Unsorted diffs with repeated payloads and zero counts; when colliding, `_row` too has few values."""
    chosen = random.integers(0, len(PAYLOADS), rows)
    hashes = FEW[chosen % 5] if collide else (chosen.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    whole = (chosen % 2).astype(np.uint64) if collide else hashes * np.uint64(7)
    return pa.record_batch(
        {
            "_hash": pa.array(hashes),
            "_row": pa.array(whole),
            "word": pa.array([PAYLOADS[i][0] for i in chosen], pa.string()),
            "number": pa.array([PAYLOADS[i][1] for i in chosen], pa.float64()),
            "_count": pa.array(random.integers(-2, 3, rows)),
        }
    )


def counts_in(blocks: Iterable[pa.RecordBatch], model: bool = False) -> Counter[tuple[int, int, bytes]]:
    """Sum of counts by row; unless it is the model, fails when a row repeats, counts 0 or is out of order."""
    found: Counter[tuple[int, int, bytes]] = Counter()
    places = []
    for block in blocks:
        for name, row in zip(bytes_of([block.column("word"), block.column("number")]), block.to_pylist(), strict=True):
            place = (row["_hash"], row["_row"], name)
            found[place] += row["_count"]
            places.append(place)
            assert model or row["_count"] != 0
    assert model or places == sorted(set(places))
    return Counter({place: count for place, count in found.items() if count})


@pytest.mark.parametrize("collide", [False, True], ids=["distinct hashes", "colliding hashes"])
@pytest.mark.parametrize("seed", range(100))
def test_consolidated_diffs_equal_a_counter(seed: int, collide: bool) -> None:
    random = np.random.default_rng(seed)
    batch = random_diffs(random, int(random.integers(0, 120)), collide)
    result = consolidate(batch.slice(1) if batch.num_rows else batch)
    assert result.schema == batch.schema
    assert counts_in([result]) == counts_in([batch.slice(1)] if batch.num_rows else [], model=True)


@pytest.mark.parametrize("collide", [False, True], ids=["distinct hashes", "colliding hashes"])
@pytest.mark.parametrize("seed", range(60))
def test_merged_diffs_equal_a_counter(tmp_path: Path, seed: int, collide: bool) -> None:
    random = np.random.default_rng(seed)
    parts = [consolidate(random_diffs(random, int(random.integers(0, 60)), collide)) for _ in range(int(random.integers(1, 6)))]
    layers = [open_blocks(tmp_path, "diffs", epoch, part, int(random.integers(1, 9))) for epoch, part in enumerate(parts, start=1)][::-1]
    expected = counts_in(parts, model=True)
    block_rows = int(random.integers(1, 20))
    assert counts_in(merge_diffs(layers, block_rows=block_rows)) == expected
    assert counts_in(scan(layers, "diffs", block_rows=block_rows)) == +expected


def test_a_hash_with_many_rows_is_merged_in_pieces(tmp_path: Path) -> None:
    def one(epoch: int) -> Layer:
        rows = np.sort(np.random.default_rng(epoch).choice(3000, 2000, replace=False)).astype(np.uint64)
        columns = {"_hash": np.full(2000, 7, np.uint64), "_row": rows, "x": rows, "_count": np.ones(2000, np.int64)}
        return open_blocks(tmp_path, "diffs", epoch, pa.RecordBatch.from_pydict(columns), 100)

    layers = [one(epoch) for epoch in (1, 2, 3)]
    blocks = list(merge_diffs(layers, block_rows=100))
    assert len(blocks) > 20 and max(block.num_rows for block in blocks) <= 100
    merged = pa.Table.from_batches(blocks)
    given = {row for layer in layers for block in layer.blocks for row in block.column("_row").to_pylist()}
    assert merged.column("_row").to_pylist() == sorted(given)
    assert sum(merged.column("_count").to_pylist()) == 6000


def test_the_rows_of_a_session_stay_together_until_it_ends(tmp_path: Path) -> None:
    places = np.arange(300, dtype=np.uint64)
    spans = pa.array([{"start": place * 10, "end": place * 10 + 10} for place in range(300)])
    columns = {"_hash": np.full(300, 7, np.uint64), "_row": places, "x": spans, "_count": np.ones(300, np.int64)}
    layer = open_blocks(tmp_path, "diffs", 1, pa.RecordBatch.from_pydict(columns), 10)
    kept = merge_diffs([layer], expired=Expired("x", 2999, chained=True), block_rows=10)
    assert sum(block.num_rows for block in kept) == 300
    assert not list(merge_diffs([layer], expired=Expired("x", 3000, chained=True), block_rows=10))


def test_diffs_without_payload_columns_are_summed() -> None:
    batch = pa.record_batch({"_hash": pa.array([1, 1, 0], pa.uint64()), "_row": pa.array([5, 5, 5], pa.uint64()), "_count": [1, 2, 4]})
    assert consolidate(batch).column("_count").to_pylist() == [4, 3]


def test_a_payload_may_use_any_names_in_any_order(tmp_path: Path) -> None:
    rows = {"_hash": pa.array([1], pa.uint64()), "_row": pa.array([2], pa.uint64()), "z": [1], "n": [2], "k0": [3], "a": [4], "_count": [1]}
    layers = [open_blocks(tmp_path, "diffs", epoch, pa.record_batch(rows), 9) for epoch in (2, 1)]
    (block,) = merge_diffs(layers)
    assert block.to_pylist() == [{name: 2 if name == "_count" else value[0] for name, value in pa.record_batch(rows).to_pydict().items()}]
    assert block.schema.names == list(rows)


def test_a_column_that_changes_its_type_is_an_internal_error() -> None:
    with pytest.raises(Internal, match='column "k0" is int64 in one layer and string in another'):
        union_schema([pa.schema([("k0", pa.int64())]), pa.schema([("k0", pa.string())])], "upserts")


def test_missing_columns_are_zero_for_sums_and_null_for_the_rest() -> None:
    wide = pa.record_batch({"_hash": pa.array([1], pa.uint64()), "n": [1], "sum0.1": [5], "max0": [7]})
    narrow = pa.record_batch({"_hash": pa.array([2], pa.uint64()), "n": [1]})
    whole = concat([narrow, wide], union_schema([narrow.schema, wide.schema], "upserts"), "upserts")
    assert whole.to_pydict() == {"_hash": [2, 1], "n": [1, 1], "sum0.1": [0, 5], "max0": [None, 7]}
