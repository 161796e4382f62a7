"""Reading a layer: what is in doubt is verified before it is used, once; and values are compared as Spark compares them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.model.errors import Corrupt
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.state import layer as layers
from nosync.state.bloom import LEAST_ROWS, bloom_of, words_of
from nosync.state.cache import KEPT_BYTES, LOOK_AFTER, LayerCache
from nosync.state.layer import Layer, bits, equal_rows_at, open_layer, take, write_layer

FACTS: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": 1, "upper": 2, "kind": "upserts", "run": "r"}


def block(start: int, rows: int = 50) -> pa.RecordBatch:
    numbers = np.arange(start, start + rows)
    return pa.record_batch({"_hash": pa.array(numbers.astype(np.uint64)), "n": pa.array(numbers + 1)})


def written(home: Path, *blocks: pa.RecordBatch, **more: Any) -> LayerInfo:
    return write_layer(home, "a.arrow", list(blocks), **FACTS, **more)


def damaged(home: Path, info: LayerInfo) -> Layer:
    """Opened, and then its second block was changed."""
    layer = open_layer(home, info)
    content = (home / info.path).read_bytes()
    at = content.index(layer.blocks[1].column("n").buffers()[1].to_pybytes()[:64])
    with (home / info.path).open("r+b") as file:
        file.seek(at)
        file.write(b"\xff")
    return layer


READS: dict[str, Callable[[Layer], object]] = {
    "hashes": lambda layer: layer.hashes(1),
    "bloom": lambda layer: layer.bloom(1),
    "column": lambda layer: layer.column(1, "n"),
    "all": lambda layer: list(layer.verified()),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_whoever_reads_a_block_in_doubt_meets_its_damage(tmp_path: Path, read: Callable[[Layer], object]) -> None:
    blocks = block(0, LEAST_ROWS), block(LEAST_ROWS, LEAST_ROWS)
    layer = damaged(tmp_path, written(tmp_path, *blocks, with_bloom=True))
    read(layer)  # nobody doubts it yet
    layer.doubt()
    assert len(layer.hashes(0)) == LEAST_ROWS  # the other block is as it was
    with pytest.raises(Corrupt, match="block 1"):
        read(layer)


def test_a_block_is_verified_once_however_often_it_is_doubted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    verify = layers.verify_block

    def count(layer: Layer, number: int) -> None:
        seen.append(number)
        verify(layer, number)

    monkeypatch.setattr(layers, "verify_block", count)
    layer = open_layer(tmp_path, written(tmp_path, block(0), block(50)))
    layer.hashes(0)
    assert seen == []
    for _ in range(2):
        layer.doubt()
        for _ in range(2):
            layer.hashes(1)
            layer.column(1, "n")
    assert seen == [1] and [len(found) for found in layer.verified()] == [50, 50] and seen == [1, 0]


def test_a_column_that_is_there_is_given(tmp_path: Path) -> None:
    layer = open_layer(tmp_path, written(tmp_path, block(0)))
    assert (column := layer.column(0, "n")) is not None and column.to_pylist() == list(range(1, 51))


@pytest.mark.parametrize("rows", [LEAST_ROWS - 1, LEAST_ROWS])
def test_a_layer_of_some_size_has_filters_and_blocks_without_rows_have_none(tmp_path: Path, rows: int) -> None:
    info = written(tmp_path, block(0, rows), block(rows, 0), block(rows, 9), with_bloom=True)
    layer = open_layer(tmp_path, info)
    assert layer.with_bloom == (rows == LEAST_ROWS) and [len(found) for found in layer.blocks] == [rows, 9]
    assert layer.schema.names == ["_hash", "n"]
    if layer.with_bloom:
        for number in (0, 1):
            words, first, last = layer.bloom(number)
            assert (words == words_of(bloom_of(layer.hashes(number)).to_numpy())).all()
            assert (first, last) == (layer.hashes(number)[0], layer.hashes(number)[-1])


def test_what_the_system_cannot_read_is_corrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = written(tmp_path, block(0))

    def cut(*_: object) -> None:
        raise OSError("expected to be able to read 8 more bytes")

    monkeypatch.setattr(layers, "_map", cut)
    with pytest.raises(Corrupt, match="is not readable: expected"):
        open_layer(tmp_path, info)


def test_only_its_owner_reads_a_layer(tmp_path: Path) -> None:
    info = written(tmp_path, block(0))
    assert (tmp_path / info.path).stat().st_mode & 0o777 == 0o600


def test_bits_have_the_sign_and_the_width_of_their_values() -> None:
    kinds = {pa.uint8(): "u1", pa.uint64(): "u8", pa.int16(): "i2", pa.int64(): "i8", pa.float32(): "i4", pa.date32(): "i4"}
    for kind, dtype in kinds.items():
        values = pa.array([1, 2, 3], pa.int32()).cast(kind)
        found, none = bits(values), bits(values.slice(0, 0))
        assert found is not None and none is not None and found.dtype == none.dtype == np.dtype(dtype) and len(none) == 0
        assert bits(pa.array([], kind)) is not None


def same(one: pa.Array, other: pa.Array) -> list[bool]:
    everywhere = np.arange(len(one))
    return list(equal_rows_at([one], everywhere, [other], everywhere).tolist())


QUIET, LOUD = (np.frombuffer(np.uint64(word).tobytes(), np.float64)[0] for word in (0x7FF8000000000000, 0x7FF8000000000001))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (pa.array([1, 2]), pa.array([1, 3]), [True, False]),
        (pa.array([1, 2]), pa.array([1, None]), [True, False]),
        (pa.array([None, 2]), pa.array([None, 2]), [True, True]),
        (pa.array([QUIET, 0.5, 1.0]), pa.array([LOUD, 0.5, 2.0]), [True, True, False]),
        (pa.array(["a", "b"]), pa.array(["a", "c"]), [True, False]),
    ],
)
def test_rows_are_equal_where_their_values_are(one: pa.Array, other: pa.Array, expected: list[bool]) -> None:
    assert same(one, other) == expected == same(other, one)


def test_rows_are_equal_where_all_their_columns_are() -> None:
    index, numbers, words = np.array([0, 1, 2]), pa.array([1, 2, 3]), pa.array(["a", "b", "c"])
    other = np.array([0, 1, 1])
    assert equal_rows_at([numbers, words], index, [numbers, words], other).tolist() == [True, True, False]
    assert equal_rows_at([numbers, words], index, [pa.array([1, 9, 3]), words], index).tolist() == [True, False, True]
    assert equal_rows_at([numbers, words], index, [numbers, pa.array(["z", "b", "c"])], index).tolist() == [False, True, True]
    assert equal_rows_at([numbers], index, [pa.array([1, 2, 3])], index).tolist() == [True] * 3
    assert equal_rows_at([words], index[:0], [words], index[:0]).tolist() == []
    assert equal_rows_at([], index, [], index).tolist() == [True] * 3
    assert take(words, other).to_pylist() == ["a", "b", "b"]


def test_what_was_just_written_is_read_from_memory_until_its_file_is_another_one(tmp_path: Path) -> None:
    cache, batch = LayerCache(limit=10), block(0)
    info = written(tmp_path, batch)
    cache.keep(tmp_path, info, batch)
    kept, mapped = cache.open(tmp_path, info), open_layer(tmp_path, info)
    assert kept.blocks[0] is batch and kept.info == mapped.info and kept.rows == mapped.rows
    assert kept.blocks[0].equals(mapped.blocks[0]) and (kept.firsts, kept.lasts) == (mapped.firsts, mapped.lasts)
    copy = (tmp_path / info.path).read_bytes()
    (tmp_path / "b.arrow").write_bytes(copy)
    (tmp_path / "b.arrow").replace(tmp_path / info.path)
    assert cache.open(tmp_path, info).blocks[0] is not batch


def test_layers_in_memory_are_forgotten_by_their_bytes_and_drive_out_no_mapped_one(tmp_path: Path) -> None:
    cache = LayerCache(limit=1, kept_bytes=20_000)
    infos = [write_layer(tmp_path, f"{number}.arrow", [block(number)], **FACTS) for number in range(20)]
    mapped = cache.open(tmp_path, infos[0])
    for number, info in enumerate(infos[1:], start=1):
        cache.keep(tmp_path, info, block(number))
    assert 2 <= len(cache) <= 6 and cache.open(tmp_path, infos[0]) is mapped


def test_what_is_large_is_mapped(tmp_path: Path) -> None:
    cache, batch = LayerCache(limit=10), block(0, rows=KEPT_BYTES // 8)
    cache.keep(tmp_path, written(tmp_path, batch), batch)
    assert len(cache) == 0


def test_a_cache_forgets_layers_that_are_gone(tmp_path: Path) -> None:
    cache = LayerCache(limit=1000)
    infos = [write_layer(tmp_path, f"{number}.arrow", [block(number)], **FACTS) for number in range(2 * LOOK_AFTER)]
    old = cache.open(tmp_path, infos[0])
    for info in infos[1:]:
        cache.open(tmp_path, info)
        (tmp_path / info.path).unlink()
    assert len(cache) <= LOOK_AFTER and cache.open(tmp_path, infos[0]) is old
