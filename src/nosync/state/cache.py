"""Layers that stay open between tasks, so that each is mapped once in a process.

What was given up keeps its room on the disk for as long as it is mapped: now and then all are looked at, those without a file forgotten.
"""

import os
import threading
from collections import OrderedDict
from pathlib import Path

import pyarrow as pa

from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.state.layer import Layer
from nosync.state.versions import open_as_of

LOOK_AFTER = 256  # layers that were opened
KEPT_BYTES = 1 << 16  # of a layer in memory


class LayerCache:
    """Open layers by path, the least recently used forgotten first. Safe to share between threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._layers: OrderedDict[tuple[str, Epoch], Layer] = OrderedDict()
        self._opened = 0

    def open(self, home: Path | str, info: LayerInfo) -> Layer:
        """The layer, mapped at most once while it stays among the `limit` most recently used, and anew where a recovery has replaced it."""
        file = f"{home}/{info.path}"
        key = file, info.end
        with self._lock:
            layer = self._layers.get(key)
            if layer is not None and layer.info == info and _inode(file) in (None, layer.inode):
                self._layers.move_to_end(key)
                return layer
        layer = open_as_of(home, info)  # outside the lock: two threads may both map it, which costs little
        self._add(key, layer)
        return layer

    def keep(self, home: Path | str, info: LayerInfo, batch: pa.RecordBatch) -> None:
        """What has just been written need not be mapped to be read, if it is small."""
        if batch.nbytes <= KEPT_BYTES:
            self._add((f"{home}/{info.path}", info.end), Layer.just_written(home, info, batch))

    def _add(self, key: tuple[str, Epoch], layer: Layer) -> None:
        with self._lock:
            self._layers[key] = layer
            self._layers.move_to_end(key)
            self._opened += 1
            if self._opened % LOOK_AFTER == 0:
                self._layers = OrderedDict((key, layer) for key, layer in self._layers.items() if _inode(key[0]) is not None)
            while len(self._layers) > self._limit:
                self._layers.popitem(last=False)

    def __len__(self) -> int:
        return len(self._layers)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None  # what is mapped can still be read
