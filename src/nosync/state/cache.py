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

LOOK_AFTER = 256  # layers that were opened, or half as many as there are
KEPT_BYTES = 1 << 16  # of a layer in memory
ALL_KEPT_BYTES = 64 << 20
LAYER_BYTES = 4 << 10
Key = tuple[str, Epoch]


class LayerCache:
    """Open layers by path, the least recently used forgotten first: of those that are mapped beyond a number, of those in memory beyond
    so many bytes. Safe to share between threads.
    """

    def __init__(self, limit: int, kept_bytes: int = ALL_KEPT_BYTES) -> None:
        self._limit, self._kept_limit = limit, kept_bytes
        self._lock = threading.Lock()
        self._layers: OrderedDict[Key, Layer] = OrderedDict()
        self._kept: OrderedDict[Key, Layer] = OrderedDict()
        self._kept_bytes = self._opened = 0

    def open(self, home: Path | str, info: LayerInfo) -> Layer:
        """The layer, mapped at most once while it stays among the `limit` most recently used, and anew where a recovery has replaced it."""
        file = f"{home}/{info.path}"
        key = file, info.end
        with self._lock:
            for among in (self._kept, self._layers):
                layer = among.get(key)
                if layer is not None and layer.info == info and _inode(file) in (None, layer.inode):
                    among.move_to_end(key)
                    return layer
        layer = open_as_of(home, info)  # outside the lock: two threads may both map it, which costs little
        with self._lock:
            self._drop(key)
            self._layers[key] = layer
            self._look()
            while len(self._layers) > self._limit:
                self._layers.popitem(last=False)
        return layer

    def keep(self, home: Path | str, info: LayerInfo, batch: pa.RecordBatch) -> None:
        """What has just been written need not be mapped to be read, if it is small."""
        if batch.nbytes > KEPT_BYTES:
            return
        key, layer = (f"{home}/{info.path}", info.end), Layer.just_written(home, info, batch)
        with self._lock:
            self._drop(key)
            self._kept[key] = layer
            self._kept_bytes += _bytes(layer)
            self._look()
            while self._kept_bytes > self._kept_limit:
                self._kept_bytes -= _bytes(self._kept.popitem(last=False)[1])

    def _drop(self, key: Key) -> None:
        self._layers.pop(key, None)
        before = self._kept.pop(key, None)
        self._kept_bytes -= _bytes(before) if before is not None else 0

    def _look(self) -> None:
        """Forgets what has no file any more, now and then."""
        self._opened += 1
        if self._opened >= max(LOOK_AFTER, len(self) // 2):
            self._opened = 0
            for key in [key for key in (*self._layers, *self._kept) if _inode(key[0]) is None]:
                self._drop(key)

    def __len__(self) -> int:
        return len(self._layers) + len(self._kept)


def _bytes(layer: Layer) -> int:
    """What a layer in memory takes, with what Python needs for it."""
    return LAYER_BYTES + sum(int(block.nbytes) for block in layer.raw)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None  # what is mapped can still be read
