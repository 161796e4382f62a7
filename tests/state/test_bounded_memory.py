"""State may be far larger than memory: merging, scanning and looking up hold blocks, never a whole trace."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.state.layer import Layer, open_layer, split_blocks, write_layer
from nosync.state.merge import merge_upserts, scan
from nosync.state.search import lookup
from tests.memory import growth_during

ROWS, LAYERS, BLOCK = 500_000, 8, 8_192


def written(home: Path, number: int) -> LayerInfo:
    """Half a million groups; the layers share most of their keys."""
    keys = np.sort(np.random.default_rng(number).choice(1_000_000, ROWS, replace=False)).astype(np.int64)
    hashes = keys.astype(np.uint64) << np.uint64(40)
    columns = {"_hash": hashes, "k0": keys, "n": np.ones(ROWS, np.int64), "sum0.0": keys * number}
    blocks = split_blocks(pa.RecordBatch.from_pydict(columns), rows=BLOCK)
    facts = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": number, "upper": number + 1, "kind": "upserts", "run": "r"}
    return write_layer(home, f"{number}.arrow", blocks, **facts)


def test_merging_scanning_and_looking_up_hold_a_fraction_of_the_state(tmp_path: Path) -> None:
    infos = [written(tmp_path, number) for number in range(1, LAYERS + 1)]
    state = sum(info.bytes for info in infos)
    layers: list[Layer] = [open_layer(tmp_path, info) for info in reversed(infos)]
    needles = layers[0].hashes(0)[:1000]

    def merge() -> None:
        facts = {"flow": "f", "trace": "o", "range": ALL_HASHES, "lower": 1, "upper": LAYERS + 1, "kind": "upserts", "run": "r"}
        write_layer(tmp_path, "merged.arrow", merge_upserts(layers, drop_tombstones=True, block_rows=BLOCK), **facts)

    def read() -> None:
        assert sum(block.num_rows for block in scan(layers, "upserts", block_rows=BLOCK)) > ROWS
        keys = [layers[0].blocks[0].column("k0").slice(0, 1000)]
        assert lookup(layers, needles, keys).mask.all()

    merge()  # what the allocator keeps for itself is not the question
    assert growth_during(merge) < state / 4
    assert growth_during(read) < state / 4
