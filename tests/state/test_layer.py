"""Layers: what is written is read back, and damage is noticed before anybody computes with it."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.families import BEST, UNKNOWN
from nosync.model.errors import Corrupt
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges
from nosync.state.cache import LayerCache
from nosync.state.layer import Layer, bits, is_additive, open_layer, split_blocks, take, verify, write_layer

FOURTHS = shard_ranges(4)


def batch_of(rows: int, seed: int = 0) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    words = pa.array([None if random.random() < 0.2 else "w" * int(random.integers(0, 9)) for _ in range(rows)], pa.string())
    return pa.record_batch(
        {
            "_hash": pa.array(np.sort(random.integers(0, 2**64, rows, dtype=np.uint64))),
            "k0": words,
            "n": pa.array(random.integers(0, 5, rows)),
            "min0": pa.array(random.random(rows), mask=random.random(rows) < 0.3),
            "max0": pa.array([[1, None], None, []] * rows, pa.list_(pa.int16())).slice(1, rows),
        }
    )


def write(home: Path, blocks: list[pa.RecordBatch], path: str = "totals/0/1.arrow", **facts: object) -> LayerInfo:
    arguments = {"flow": "shop", "trace": "totals", "range": FOURTHS[3], "lower": 5, "upper": 7, "kind": "upserts", "run": "r1"} | facts
    return write_layer(home, path, blocks, **arguments)  # type: ignore[arg-type]


def content(layer: Layer) -> list[dict[str, object]]:
    return [row for block in layer.blocks for row in block.to_pylist()]


@pytest.mark.parametrize("rows", [1, 2, 7, 100])
def test_a_layer_reads_back_as_written(tmp_path: Path, rows: int) -> None:
    batch = batch_of(rows)
    info = write(tmp_path, split_blocks(batch, rows=3))
    layer = open_layer(tmp_path, info)
    verify(layer)
    assert content(layer) == batch.to_pylist()
    assert (info.rows, layer.rows, info.lower, info.upper, info.range) == (rows, rows, 5, 7, FOURTHS[3])
    assert info.bytes == (tmp_path / info.path).stat().st_size
    assert layer.schema.metadata[b"flow"] == b"shop" and layer.schema.metadata[b"rounds"] == b"0"
    hashes = np.concatenate([layer.hashes(block) for block in range(len(layer.blocks))])
    assert (hashes == batch.column(0).to_numpy()).all()
    assert layer.firsts[0] == hashes[0] and layer.lasts[-1] == hashes[-1]
    assert layer.column(0, "sum9") is None


def test_a_layer_without_rows_can_be_written_and_opened(tmp_path: Path) -> None:
    for number, blocks in enumerate([[], [batch_of(0)]]):
        layer = open_layer(tmp_path, write(tmp_path, blocks, path=f"{number}.arrow"))
        verify(layer)
        assert layer.rows == 0 and layer.blocks == [] and len(layer.firsts) == 0
    assert layer.schema.names == batch_of(0).schema.names


def test_the_checksum_depends_on_content_and_names_but_not_on_the_run(tmp_path: Path) -> None:
    batch = batch_of(20)
    renamed = batch.rename_columns(["_hash", "k0", "n", "min1", "max0"])
    first = write(tmp_path, [batch], "a").checksum
    assert write(tmp_path, [batch], "b", run="r2").checksum == first
    assert write(tmp_path, [renamed], "c").checksum != first
    assert write(tmp_path, [batch.slice(1)], "d").checksum != first


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        write(tmp_path, [batch_of(3), pa.record_batch({"other": [1]})])
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_missing_file_is_corrupt_and_named(tmp_path: Path) -> None:
    info = write(tmp_path, [batch_of(3)])
    (tmp_path / info.path).unlink()
    with pytest.raises(Corrupt, match=r'"totals/0/1\.arrow" is missing'):
        open_layer(tmp_path, info)


def test_a_truncated_or_lengthened_file_is_refused_before_mapping(tmp_path: Path) -> None:
    info = write(tmp_path, [batch_of(50)])
    whole = (tmp_path / info.path).read_bytes()
    for damaged in [whole[:size] for size in range(0, len(whole), 97)] + [whole + b"x"]:
        (tmp_path / info.path).write_bytes(damaged)
        with pytest.raises(Corrupt, match=f"instead of {info.bytes}"):
            open_layer(tmp_path, info)


def test_a_truncated_file_is_refused_even_when_the_journal_agrees_with_its_length(tmp_path: Path) -> None:
    info = write(tmp_path, [batch_of(50)])
    whole = (tmp_path / info.path).read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / info.path).write_bytes(whole[:size])
        with pytest.raises(Corrupt):
            open_layer(tmp_path, replace(info, bytes=size))


def test_another_layer_under_the_same_name_is_corrupt(tmp_path: Path) -> None:
    info = write(tmp_path, [batch_of(3)])
    for wrong in [replace(info, range=FOURTHS[2]), replace(info, upper=8), replace(info, trace="x"), replace(info, rows=4)]:
        with pytest.raises(Corrupt):
            open_layer(tmp_path, wrong)
    with pytest.raises(Corrupt, match="checksum"):
        verify(open_layer(tmp_path, replace(info, checksum="00")))


def test_no_flipped_byte_goes_unnoticed(tmp_path: Path) -> None:
    """Each byte of the file in turn: either it is noticed, or it lies in padding and every value is still right."""
    batch = batch_of(24)
    info = write(tmp_path, split_blocks(batch, rows=10))
    file = tmp_path / info.path
    whole = file.read_bytes()
    noticed = 0
    for position in range(len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << position % 8)]) + whole[position + 1 :])
        try:
            layer = open_layer(tmp_path, info)
            verify(layer)
        except Corrupt:
            noticed += 1
            continue
        assert content(layer) == batch.to_pylist(), f"byte {position}"
    assert noticed > len(whole) // 4


def test_bytes_that_change_under_an_open_layer_are_noticed(tmp_path: Path) -> None:
    info = write(tmp_path, split_blocks(batch_of(24), rows=10))
    whole = (tmp_path / info.path).read_bytes()
    layer = open_layer(tmp_path, info)
    before = str(content(layer))
    for position in range(0, len(whole), 3):
        with (tmp_path / info.path).open("r+b") as file:
            file.seek(position)
            file.write(bytes([whole[position] ^ 0x80]))
        try:
            verify(layer)
            assert str(content(layer)) == before, f"byte {position}"
        except Corrupt:
            pass
        with (tmp_path / info.path).open("r+b") as file:
            file.write(whole)


def test_the_cache_maps_a_layer_once_and_forgets_the_least_recently_used(tmp_path: Path) -> None:
    infos = [write(tmp_path, [batch_of(3, seed)], f"{seed}.arrow") for seed in range(3)]
    cache = LayerCache(2)
    first = cache.open(tmp_path, infos[0])
    cache.open(tmp_path, infos[1])
    assert cache.open(tmp_path, infos[0]) is first
    cache.open(tmp_path, infos[2])
    assert cache.open(tmp_path, infos[0]) is first
    assert len(cache) == 2
    (tmp_path / infos[1].path).unlink()
    with pytest.raises(Corrupt):
        cache.open(tmp_path, infos[1])


def test_a_layer_that_was_replaced_by_a_good_copy_is_mapped_anew(tmp_path: Path) -> None:
    info = write(tmp_path, [batch_of(3)], "a.arrow")
    cache, path = LayerCache(2), tmp_path / info.path
    first = cache.open(tmp_path, info)
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    assert cache.open(tmp_path, info) is not first
    path.unlink()
    assert cache.open(tmp_path, info).blocks[0].equals(batch_of(3))  # still mapped


def test_the_cache_can_be_shared_between_threads(tmp_path: Path) -> None:
    infos = [write(tmp_path, [batch_of(3, seed)], f"{seed}.arrow") for seed in range(5)]
    cache, wrong = LayerCache(2), []

    def read(seed: int) -> None:
        for turn in range(100):
            info = infos[(seed + turn) % 5]
            if cache.open(tmp_path, info).info != info:
                wrong.append(info)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and len(cache) == 2


@pytest.mark.parametrize(("rows", "limit"), [(0, 3), (1, 3), (3, 3), (4, 3), (100, 7), (100, 1000)])
def test_blocks_are_even_slices_within_the_limits(rows: int, limit: int) -> None:
    batch = batch_of(rows)
    blocks = split_blocks(batch, rows=limit)
    assert [row for block in blocks for row in block.to_pylist()] == batch.to_pylist()
    assert all(0 < block.num_rows <= limit for block in blocks)


def test_wide_rows_make_smaller_blocks() -> None:
    assert len(split_blocks(batch_of(100), rows=1000, bytes=500)) >= 5


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3, 4], pa.int64()), pa.array([1, None, 3, 4], pa.int32()), pa.array([True, False, None, True]),
        pa.array([0.5, float("nan"), -0.0, None]), pa.array(["a", None, "", "ccc"]), pa.array([1, 2, 3, 4], pa.date32()),
        pa.array([1, 2, None, 4], pa.timestamp("us", "UTC")), pa.array([[1], None, [], [2, 3]]), pa.nulls(4),
        pa.array([1, 2, 3, None], pa.decimal128(20, 2)), pa.array([{"a": 1}, None, {"a": None}, {"a": 4}]),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_taking_rows_works_for_every_type_and_for_slices(values: pa.Array) -> None:
    for array in (values, values.slice(1), values.slice(2, 2), values.slice(0, 1)):
        index = np.array([len(array) - 1, 0, 0])
        assert str(take(array, index).to_pylist()) == str([array.to_pylist()[i] for i in index])
        assert take(array, index).type == array.type
        assert take(array, index[:0]).to_pylist() == []


def test_bits_are_views_of_the_values_and_absent_for_nulls() -> None:
    array = pa.array([1, 2, 3], pa.int64())
    view = bits(array.slice(1))
    assert view is not None and view.tolist() == [2, 3] and not view.flags.owndata
    assert bits(pa.array([1, None])) is None and bits(pa.array([True])) is None and bits(pa.array(["a"])) is None


def test_only_sums_are_zero_when_missing() -> None:
    assert is_additive(pa.field("sum0.-1", pa.int64())) and is_additive(pa.field("n", pa.int64()))
    assert not is_additive(pa.field("min0", pa.int64())) and not is_additive(pa.field("sum0", pa.float64()))
    assert not any(is_additive(pa.field(f"{kind}0{mark}", pa.int64())) for kind in (*BEST, "value") for mark in ("", UNKNOWN))
    assert is_additive(pa.field("origin0", pa.int64()))


def test_the_hashes_by_which_blocks_are_skipped_are_compared_when_a_layer_is_opened(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": 1, "upper": 2, "kind": "upserts", "run": "r"}
    hashes = np.array([7, 8, 9], np.uint64)
    blocks = [pa.record_batch({"_hash": pa.array(hashes + 10 * number), "n": pa.array([1, 1, 1])}) for number in range(2)]
    info = write_layer(tmp_path, "a.arrow", blocks, **facts)
    content = (tmp_path / "a.arrow").read_bytes()
    for changed in (0, 16):
        damaged = bytearray(content)
        damaged[content.index((hashes + 10).tobytes()) + changed] ^= 1
        (tmp_path / "a.arrow").write_bytes(damaged)
        with pytest.raises(Corrupt, match="does not begin or end with the hash it had"):
            open_layer(tmp_path, info)
