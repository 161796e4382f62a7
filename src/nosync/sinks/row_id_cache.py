"""What the rows of files are known by, kept while there is room: files of a lake never change."""

from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

MOST = 256 << 20  # bytes


class RowIdCache:
    """Row ids by path."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self._bytes = most, 0
        self._known: OrderedDict[str, pa.Array] = OrderedDict()

    def get(self, path: str, make: Callable[[], pa.Array]) -> pa.Array:
        if path not in self._known:
            self._known[path] = make()
            self._bytes += self._known[path].nbytes
        self._known.move_to_end(path)
        found = self._known[path]
        while self._bytes > self.most:
            self._bytes -= self._known.popitem(last=False)[1].nbytes
        return found
