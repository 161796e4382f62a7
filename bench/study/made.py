"""The same study over a log that is written layer by layer, without Spark: what a window of twenty epochs leaves that accumulates one value
for each key, or retains all its rows until it closes. Restoring is reading the newest state from its layers.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nosync.duties.merge_worker import carry_out
from nosync.duties.merging import due_folds, due_merges
from nosync.journal.entries import Computed, Entry, GivenUp, Merged, Opened, Thinned
from nosync.journal.image import Image
from nosync.model.compaction import Compaction
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import Epoch, RecordNumber
from nosync.model.layers import LayerInfo
from nosync.state.folding import needed
from nosync.state.layer import write_layer
from nosync.state.merge import scan
from nosync.state.versions import open_as_of

TRACE, WINDOW, EPOCH_SECONDS, READINGS = "windows", 20, 0.1, 5
KINDS = {"accumulating": "upserts", "retain-all": "diffs"}


def batches(kind: str, epochs: int, rows: int, keys: int) -> Iterator[pa.RecordBatch]:
    """What each epoch writes. With the first epoch of a window, all of the one before goes."""
    chance, hashes = np.random.default_rng(1), np.sort(np.random.default_rng(7).integers(0, 2**64, keys, dtype=np.uint64))
    counts, held, number = dict[int, int](), list[tuple[int, int]](), 0
    for epoch in range(epochs):
        drawn, closes = chance.integers(0, keys, rows).tolist(), epoch % WINDOW == 0
        if kind == "accumulating":
            gone, counts = (counts, {}) if closes else ({}, counts)
            for key in drawn:
                counts[key] = counts.get(key, 0) + 1
            touched = sorted({*drawn, *gone})
            found = [counts.get(key, 0) for key in touched]
            columns = {"_hash": hashes[touched], "k0": touched, "n": found, "sum0.0": [3 * count for count in found]}
        else:
            added = [(key, number + index) for index, key in enumerate(drawn)]
            gone_rows, held = (held, added) if closes else ([], held + added)
            number += rows
            changes = sorted([(*row, 1) for row in added] + [(*row, -1) for row in gone_rows])
            key, row, diff = (list(column) for column in zip(*changes, strict=True))
            columns = {"_hash": hashes[key], "_row": np.array(row, np.uint64), "c0": key, "c1": row, "_count": diff}
        yield pa.record_batch({name: pa.array(column) for name, column in columns.items()})


class Log:
    """One trace of which the newest state alone is kept. `rewritten`: bytes of all merged layers."""

    def __init__(self, home: Path, kind: str, knobs: Compaction) -> None:
        self.home, self.kind, self.knobs = home, KINDS[kind], knobs
        self.image, self.number, self.rewritten = Image(), 0, 0

    def apply(self, *entries: Entry) -> None:
        for entry in entries:
            self.number += 1
            self.image.apply(RecordNumber(self.number), entry)

    def epoch(self, batch: pa.RecordBatch) -> int:
        """One more epoch, and all that is due after it; gives the bytes of the log."""
        epoch = Epoch(self.image.epoch + 1)
        path = f"layers/{TRACE}/0-f/{epoch:012d}-{epoch + 1}-1.aa-{self.number:x}.arrow"
        facts: dict[str, Any] = {"flow": "study", "trace": TRACE, "range": ALL_HASHES, "kind": self.kind, "run": "1.aa"}
        layer = write_layer(self.home, path, [batch], lower=epoch, upper=epoch + 1, **facts)
        self.apply(Opened(epoch, EPOCH_SECONDS * epoch, {}), Computed(epoch, (layer,), {}, {}), Thinned(epoch, (), ()))
        while orders := self.orders():
            for order in orders:
                merged = LayerInfo.from_json(carry_out(str(self.home), "study", "1.aa", order))
                self.rewritten += merged.bytes
                self.apply(Merged(merged))
            self.give_up()
        return sum(one.bytes for one in self.image.layers())

    def orders(self) -> list[dict[str, Any]]:
        folds = due_folds(self.image, self.image.epoch, [(TRACE, ALL_HASHES)], self.knobs)
        return [*chain(*due_merges(self.image, knobs=self.knobs)[:1]), *folds]

    def give_up(self) -> None:
        layers = self.image.traces[TRACE][ALL_HASHES]
        stay = needed(layers, self.image.kept, self.image.epoch) | {layer.path for layer in self.image.newest_layers()}
        gone = tuple(layer.path for layer in layers if layer.path not in stay)
        self.apply(GivenUp(gone))
        for path in gone:
            (self.home / path).unlink()

    def read(self) -> float:
        """Seconds to read the newest state."""
        begun = time.perf_counter()
        for _ in scan([open_as_of(self.home, layer) for layer in self.image.newest_layers()], self.kind):  # type: ignore[arg-type]
            pass
        return time.perf_counter() - begun


def study(folder: Path, kind: str, ratio: float, age: float, epochs: int, rows: int, keys: int) -> dict[str, Any]:
    log = Log(folder, kind, Compaction(None, age, ratio))
    sizes = [log.epoch(batch) for batch in batches(kind, epochs, rows, keys)]
    settled = sizes[epochs // 3 :]
    return {
        "kind": kind,
        "dirty ratio": ratio,
        "segment age": age,
        "log, median KiB": statistics.median(settled) / 1024,
        "log, most KiB": max(settled) / 1024,
        "rewritten, MiB": log.rewritten / 2**20,
        "read, ms": 1e3 * min(log.read() for _ in range(READINGS)),
        "sizes": sizes,
    }
