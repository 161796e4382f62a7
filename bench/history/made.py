"""A home of many keys and many epochs, written layer by layer: what a count by key would have left, merged as it goes."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from nosync.duties.merge_worker import merge
from nosync.duties.merging import due_merges
from nosync.history.record import ViewRecord
from nosync.journal.entries import Computed, Declared, Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path
from nosync.journal.rolling import Roller
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import Result
from nosync.kernels.xxhash64 import hash_columns
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.shards import shard_ranges
from nosync.state.layer import split_blocks, write_layer
from nosync.store.disk import LocalDisk

TRACE = "counts/aggregate"
SPEC = Accumulation((pa.int64(),), (), (Result("count", (), pa.int64()),))
VIEW = ViewRecord(pa.schema([("k", pa.int64()), ("n", pa.int64())]), TRACE, "upserts", SPEC, (0, 1))
SHARDS = 2


def make(home: Path, keys: int, epochs: int, touched: int) -> None:
    """Epoch 1 brings all keys, each further one counts `touched` of them once more."""
    journal = Journal(LocalDisk(home), None, this_process(0.0))
    roller = Roller(journal, journal.disk, None)
    journal.append(Declared("made", SHARDS, {}, {}, {"counts": VIEW.to_json()}))
    counts, chance = np.zeros(keys, np.int64), np.random.default_rng(1)
    for epoch in range(1, epochs + 1):
        chosen = np.arange(keys) if epoch == 1 else np.unique(chance.integers(0, keys, touched))
        counts[chosen] += 1
        journal.append(Opened(epoch, float(epoch), {}))
        journal.append(Computed(epoch, tuple(_layers(home, journal.run, epoch, chosen, counts[chosen])), {}, {}))
        for order in chain(*due_merges(journal.image)[:1]):
            journal.append(Merged(merge(str(home), "made", journal.run, order)))
        roller.step(journal.number)


def _layers(home: Path, run: str, epoch: int, keys: np.ndarray, counts: np.ndarray) -> list[LayerInfo]:
    hashes = hash_columns([pa.array(keys)], len(keys))
    order = np.argsort(hashes)
    batch = pa.RecordBatch.from_pydict(
        {"_hash": pa.array(hashes[order]), "k0": pa.array(keys[order]), "n": pa.array(counts[order])}
    )
    found = []
    for held in shard_ranges(SHARDS):
        low, high = np.searchsorted(hashes[order], np.array([held.lower, held.upper - 1], np.uint64))
        part = batch.slice(int(low), int(high - low) + int(held.upper == 1 << 64 and high < len(order)))
        if part.num_rows:
            path = layer_path(TRACE, held, epoch, epoch + 1, run)
            facts = {"flow": "made", "trace": TRACE, "range": held, "lower": epoch, "upper": epoch + 1, "kind": "upserts", "run": run}
            found.append(write_layer(home, path, split_blocks(part), **facts))
    return found
