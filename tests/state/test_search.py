"""Search: a cover answers like a dictionary, also where hashes collide, keys are odd and blocks are tiny."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.model.errors import Internal
from nosync.model.hash_range import ALL_HASHES
from nosync.state.canonical import canonical_bytes
from nosync.state.layer import Layer, open_layer, split_blocks, write_layer
from nosync.state.merge import consolidate
from nosync.state.search import lookup, rows_of

NAN = float("nan")
UNIVERSES: dict[str, list[pa.Array]] = {
    "ints": [pa.array(range(60), pa.int64())],
    "nulls": [pa.array([None, *range(40)], pa.int16())],
    "floats": [pa.array([None, NAN, 0.0, -0.0, 1.5, float("-inf")], pa.float64())],
    "strings": [pa.array([None, "", "a", "aa", "b", "ß", "z" * 40, "c", "d"], pa.string())],
    "structs": [pa.array([None, {"x": 1, "y": None}, {"x": None, "y": None}, {"x": 1, "y": "q"}, {"x": 2, "y": "q"}])],
    "pairs": [pa.array([1, 1, 2, 2, None, None], pa.int32()), pa.array(["a", "b", "a", None, "a", None], pa.string())],
}
FEW = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)


def open_batch(home: Path, kind: str, epoch: int, batch: pa.RecordBatch, block_rows: int) -> Layer:
    facts: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": epoch, "upper": epoch + 1, "kind": kind, "run": "r"}
    return open_layer(home, write_layer(home, f"{epoch}.arrow", split_blocks(batch, block_rows), schema=batch.schema, **facts))


class World:
    """Keys with hashes, ordered as layers order them, and a model of what each key's newest value is."""

    def __init__(self, seed: int, kind: str, collide: bool) -> None:
        self.random = np.random.default_rng([seed, collide])
        universe = UNIVERSES[kind]
        names = canonical_bytes(universe).to_pylist()
        drawn = self.random.choice(FEW, len(names)) if collide else self.random.integers(0, 2**64, len(names), dtype=np.uint64)
        order = sorted(range(len(names)), key=lambda i: (int(drawn[i]), names[i]))
        self.hashes = drawn[order]
        self.keys = [column.take(pa.array(order)) for column in universe]
        self.model: dict[int, tuple[int, int, Any, Any]] = {}

    def some(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Positions of random keys, ascending, so that hashes ascend too."""
        size = int(self.random.integers(0, len(self.hashes) + 1))
        return np.sort(self.random.choice(len(self.hashes), size, replace=False))

    def layer(self, home: Path, epoch: int) -> Layer:
        """A layer of random updates with sparse columns; the model learns them."""
        at = self.some()
        n, sums = self.random.integers(0, 3, len(at)), self.random.integers(-(2**40), 2**40, len(at))
        least = [None if self.random.random() < 0.3 else int(value) for value in self.random.integers(0, 99, len(at))]
        longest = [None if self.random.random() < 0.3 else "x" * int(value) for value in self.random.integers(0, 9, len(at))]
        with_sum, with_best = self.random.random(2) < 0.7
        columns = {"_hash": pa.array(self.hashes[at])} | {f"k{i}": key.take(pa.array(at)) for i, key in enumerate(self.keys)}
        columns |= {"n": pa.array(n)} | ({"sum0.0": pa.array(sums)} if with_sum else {})
        columns |= {"min0": pa.array(least, pa.int64()), "max1": pa.array(longest, pa.string())} if with_best else {}
        for row, position in enumerate(at.tolist()):
            best = (least[row], longest[row]) if with_best else (None, None)
            self.model[position] = (int(n[row]), int(sums[row]) if with_sum else 0, *best)
        return open_batch(home, "upserts", epoch, pa.record_batch(columns), int(self.random.integers(1, 12)))


@pytest.mark.parametrize("collide", [False, True], ids=["distinct hashes", "colliding hashes"])
@pytest.mark.parametrize("kind", list(UNIVERSES))
@pytest.mark.parametrize("seed", range(40))
def test_lookup_answers_like_a_dictionary(tmp_path: Path, seed: int, kind: str, collide: bool) -> None:
    world = World(seed, kind, collide)
    layers = [world.layer(tmp_path, epoch) for epoch in range(1, int(world.random.integers(2, 7)))][::-1]
    for _ in range(3):
        at = world.some()
        found = lookup(layers, world.hashes[at], [key.take(pa.array(at)) for key in world.keys])
        expected = [world.model.get(position, (0, 0, None, None)) for position in at.tolist()]
        assert found.mask.tolist() == [position in world.model for position in at.tolist()]
        assert found.additive("n").tolist() == [row[0] for row in expected]
        assert found.additive("sum0.0").tolist() == [row[1] for row in expected]
        assert found.best("min0", pa.int64()).to_pylist() == [row[2] for row in expected]
        assert found.best("max1", pa.string()).to_pylist() == [row[3] for row in expected]
        assert found.additive("sum9").tolist() == [0] * len(at)
        assert found.best("min9", pa.float64()) == pa.nulls(len(at), pa.float64())


@pytest.mark.parametrize("collide", [False, True], ids=["distinct hashes", "colliding hashes"])
@pytest.mark.parametrize("seed", range(20))
def test_many_needles_are_found_in_small_layers_over_a_large_one(tmp_path: Path, seed: int, collide: bool) -> None:
    """Few rows against many needles take the other way of searching."""
    random = np.random.default_rng(seed)
    keys = np.arange(2000)
    hashes = np.sort(random.integers(0, 500 if collide else 2**64, 2000, dtype=np.uint64))
    layers, model = [], np.zeros(2000, dtype=np.int64)
    names = canonical_bytes([pa.array(keys)]).to_pylist()
    keys = keys[sorted(range(2000), key=lambda i: (int(hashes[i]), names[i]))]
    for epoch, size in enumerate([1500, 90, 20, 3], start=1):
        at = np.sort(random.choice(2000, size, replace=False))
        batch = pa.record_batch({"_hash": pa.array(hashes[at]), "k0": keys[at], "n": np.full(size, epoch)})
        layers.insert(0, open_batch(tmp_path, "upserts", epoch, batch, 400))
        model[at] = epoch
    found = lookup(layers, hashes, [pa.array(keys)])
    assert (found.additive("n") == model).all() and (found.mask == (model > 0)).all()


def test_a_tombstone_hides_older_values(tmp_path: Path) -> None:
    rows = [pa.record_batch({"_hash": pa.array([7], pa.uint64()), "k0": ["a"], "n": [n], "sum0.0": [n]}) for n in (0, 3)]
    layers = [open_batch(tmp_path, "upserts", 2 - number, batch, 9) for number, batch in enumerate(rows)]
    found = lookup(layers, np.array([7], dtype=np.uint64), [pa.array(["a"])])
    assert found.mask.tolist() == [True] and found.additive("sum0.0").tolist() == [0]


def test_a_global_aggregate_is_found_without_key_columns(tmp_path: Path) -> None:
    layer = open_batch(tmp_path, "upserts", 1, pa.record_batch({"_hash": pa.array([42], pa.uint64()), "n": [9]}), 9)
    assert lookup([layer], np.array([42], dtype=np.uint64), []).additive("n").tolist() == [9]


def test_any_nan_finds_any_other(tmp_path: Path) -> None:
    stored, sought = np.array([0x7FF8000000000000, 0x7FF8000000000001], dtype=np.uint64).view(np.float64)
    batch = pa.record_batch({"_hash": pa.array([42], pa.uint64()), "k0": pa.array([stored]), "n": [9]})
    layer = open_batch(tmp_path, "upserts", 1, batch, 9)
    assert lookup([layer], np.array([42], dtype=np.uint64), [pa.array(np.array([sought]))]).mask.tolist() == [True]


def test_names_are_those_of_layers_with_hits(tmp_path: Path) -> None:
    one = open_batch(tmp_path, "upserts", 1, pa.record_batch({"_hash": pa.array([1], pa.uint64()), "n": [1], "sum0.0": [1]}), 9)
    two = open_batch(tmp_path, "upserts", 2, pa.record_batch({"_hash": pa.array([2], pa.uint64()), "n": [1], "sum0.1": [1]}), 9)
    assert lookup([two, one], np.array([1], dtype=np.uint64), []).names == ("_hash", "n", "sum0.0")
    assert lookup([two, one], np.array([3], dtype=np.uint64), []).names == ()


def test_an_empty_cover_and_no_needles_find_nothing(tmp_path: Path) -> None:
    none = np.array([], dtype=np.uint64)
    layer = open_batch(tmp_path, "upserts", 1, pa.record_batch({"_hash": pa.array([42], pa.uint64()), "k0": [1], "n": [9]}), 9)
    assert lookup([], np.array([1], dtype=np.uint64), [pa.array([1])]).mask.tolist() == [False]
    assert lookup([layer, layer], none, [pa.array([], pa.int64())]).best("min0", pa.string()).to_pylist() == []


def test_a_layer_without_the_key_is_an_internal_error(tmp_path: Path) -> None:
    layer = open_batch(tmp_path, "upserts", 1, pa.record_batch({"_hash": pa.array([42], pa.uint64()), "n": [9]}), 9)
    with pytest.raises(Internal, match="no key column k0"):
        lookup([layer], np.array([42], dtype=np.uint64), [pa.array([1])])


def diffs(random: np.random.Generator, rows: int, spread: int) -> pa.RecordBatch:
    values = random.integers(0, 40, rows)
    return pa.record_batch(
        {
            "_hash": pa.array((values % spread).astype(np.uint64) * np.uint64(2**58)),
            "_row": pa.array((values % (spread + 3)).astype(np.uint64)),
            "word": pa.array([None if value == 0 else f"w{value}" for value in values], pa.string()),
            "_count": pa.array(random.integers(-2, 3, rows)),
        }
    )


@pytest.mark.parametrize("seed", range(150))
def test_rows_of_hashes_equal_a_counter(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    spread = int(random.choice([5, 40]))
    parts = [consolidate(diffs(random, int(random.integers(0, 80)), spread)) for _ in range(int(random.integers(1, 6)))]
    layers = [open_batch(tmp_path, "diffs", epoch, part, int(random.integers(1, 12))) for epoch, part in enumerate(parts, start=1)][::-1]
    hashes = np.unique(random.integers(0, spread + 2, int(random.integers(0, 40)))).astype(np.uint64) * np.uint64(2**58)
    expected: Counter[tuple[int, int, str | None]] = Counter()
    for row in (row for part in parts for row in part.to_pylist()):
        if row["_hash"] in hashes:
            expected[row["_hash"], row["_row"], row["word"]] += row["_count"]
    found = rows_of(layers, hashes)
    rows = found.to_pylist() if found is not None else []
    assert {(row["_hash"], row["_row"], row["word"]): row["_count"] for row in rows} == {key: n for key, n in expected.items() if n}
    names = canonical_bytes([found.column("word")]).to_pylist() if found is not None else []
    places = [(row["_hash"], row["_row"], name) for row, name in zip(rows, names, strict=True)]
    assert places == sorted(set(places))


def test_rows_that_cancel_out_are_no_rows(tmp_path: Path) -> None:
    rows = [pa.record_batch({"_hash": pa.array([1], pa.uint64()), "_row": pa.array([2], pa.uint64()), "_count": [n]}) for n in (1, -1)]
    layers = [open_batch(tmp_path, "diffs", epoch, batch, 9) for epoch, batch in enumerate(rows, start=1)]
    assert rows_of(layers, np.array([1], dtype=np.uint64)) is None
    assert rows_of([], np.array([1], dtype=np.uint64)) is None
