"""Layers that stay open between tasks, so that each is mapped once in a process."""

import os
import threading
from collections import OrderedDict
from pathlib import Path

from nosync.model.layers import LayerInfo
from nosync.state.layer import Layer, open_layer


class LayerCache:
    """Open layers by path, the least recently used forgotten first. Safe to share between threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._layers: OrderedDict[str, Layer] = OrderedDict()

    def open(self, home: Path | str, info: LayerInfo) -> Layer:
        """The layer, mapped at most once while it stays among the `limit` most recently used, and anew where a recovery has replaced it."""
        key = f"{home}/{info.path}"
        with self._lock:
            layer = self._layers.get(key)
            if layer is not None and layer.info == info and _inode(key) in (None, layer.inode):
                self._layers.move_to_end(key)
                return layer
        layer = open_layer(home, info)  # outside the lock: two threads may both map it, which costs little
        with self._lock:
            self._layers[key] = layer
            self._layers.move_to_end(key)
            while len(self._layers) > self._limit:
                self._layers.popitem(last=False)
        return layer

    def __len__(self) -> int:
        return len(self._layers)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None  # what is mapped can still be read
