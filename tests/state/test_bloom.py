"""Bloom filters of layers: what is there always passes, few others do, and answers are the same with and without."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nosync.duties.merge_worker import merge
from nosync.model.errors import Corrupt
from nosync.model.hash_range import ALL_HASHES
from nosync.state.bloom import LEAST_ROWS, bloom_of, masks_of, passes, words_of
from nosync.state.layer import Layer, open_layer, split_blocks, verify, write_layer
from nosync.state.search import BloomUse, lookup

HASHES = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=200)


@given(HASHES, st.integers(0, 60))
def test_what_is_there_always_passes(drawn: list[int], narrow: int) -> None:
    """Also where the hashes of a block lie close together, or at the ends of what there is."""
    hashes = np.unique(np.array(drawn, np.uint64) >> np.uint64(narrow))
    words = words_of(bloom_of(hashes).to_numpy())
    assert passes(words, hashes, masks_of(hashes), hashes[0], hashes[-1]).all()


def test_few_others_pass() -> None:
    chance = np.random.default_rng(1)
    hashes = np.unique(chance.integers(2**40, 2**60, 100_000, dtype=np.uint64))
    others = np.setdiff1d(chance.integers(int(hashes[0]), int(hashes[-1]), 100_000, dtype=np.uint64), hashes)
    words = words_of(bloom_of(hashes).to_numpy())
    assert passes(words, others, masks_of(others), hashes[0], hashes[-1]).mean() < 0.06


def layer(home: Path, hashes: np.ndarray[Any, Any], epoch: int, with_bloom: bool, rows: int = 262_144) -> Layer:
    columns = [pa.array(hashes), pa.array(hashes.view(np.int64)), pa.array(np.full(len(hashes), epoch))]
    blocks = split_blocks(pa.RecordBatch.from_arrays(columns, names=["_hash", "k0", "n"]), rows)
    place: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "run": "r"}
    facts = place | {"lower": epoch, "upper": epoch + 1, "kind": "upserts"}
    return open_layer(home, write_layer(home, f"{epoch}-{with_bloom}.arrow", blocks, with_bloom=with_bloom, **facts))


def drawn(seed: int, count: int) -> np.ndarray[Any, Any]:
    return np.unique(np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64))


@pytest.mark.parametrize("rows", [6_000, 262_144])
def test_a_lookup_finds_the_same_with_and_without_and_counts_what_it_asked(tmp_path: Path, rows: int) -> None:
    stored = [drawn(seed, 20_001) for seed in (1, 2)]
    needles = np.unique(np.concatenate([drawn(3, 10_000), stored[0][::100], stored[1][::50]]))
    keys = [pa.array(needles.view(np.int64))]
    covers = [[layer(tmp_path, hashes, 2 - i, with_bloom, rows) for i, hashes in enumerate(stored)] for with_bloom in (False, True)]
    plain, bloom = (lookup(cover, needles, keys) for cover in covers)
    assert (plain.mask == bloom.mask).all() and (plain.additive("n") == bloom.additive("n")).all()
    assert plain.bloom == BloomUse()
    there = len(stored[0][::100]) + len(stored[1][::50])
    assert bloom.bloom.found == there
    assert there <= bloom.bloom.passed < there + 0.06 * bloom.bloom.asked and bloom.bloom.asked > len(needles)


def test_a_lookup_that_mostly_hits_does_not_ask(tmp_path: Path) -> None:
    hashes = drawn(1, 20_000)
    found = lookup([layer(tmp_path, hashes, 1, with_bloom=True)], hashes, [pa.array(hashes.view(np.int64))])
    assert found.mask.all() and found.bloom == BloomUse()


def test_small_layers_have_none_and_readers_never_see_them(tmp_path: Path) -> None:
    assert not layer(tmp_path, drawn(1, LEAST_ROWS - 1), 1, with_bloom=True).with_bloom
    with_bloom, plain = (layer(tmp_path, drawn(1, LEAST_ROWS + 9), 2, with_bloom=with_bloom) for with_bloom in (True, False))
    assert with_bloom.with_bloom and with_bloom.schema.names == ["_hash", "k0", "n"]
    assert with_bloom.blocks[0].equals(plain.blocks[0])


def test_merged_layers_have_one_if_their_inputs_have(tmp_path: Path) -> None:
    infos = [layer(tmp_path, drawn(seed, 5_000), 3 - seed, with_bloom=True).info for seed in (1, 2)]
    order = {"layers": [info.to_json() for info in infos], "ranges": ["0-f", "0-f"], "range": "0-f", "bottom": True}
    merged = verify(open_layer(tmp_path, merge(str(tmp_path), "f", "1.r", order)))
    needles = drawn(1, 5_000)
    assert merged.with_bloom and lookup([merged], needles, [pa.array(needles.view(np.int64))]).mask.all()


def test_a_sieve_that_changed_is_noticed_before_it_is_believed(tmp_path: Path) -> None:
    whole = layer(tmp_path, drawn(1, 10_000), 1, with_bloom=True)
    file = tmp_path / whole.info.path
    content = bytearray(file.read_bytes())
    place = content.find(whole.raw[0].column(3).to_numpy().tobytes())
    content[place + 100] ^= 0xFF
    file.write_bytes(content)
    damaged = open_layer(tmp_path, whole.info)
    damaged.doubt()
    needles = drawn(9, 100)
    with pytest.raises(Corrupt, match="has changed since it was written"):
        lookup([damaged], needles, [pa.array(needles.view(np.int64))])
