"""What is known of a layer without opening it.

Written into receipts and journal entries, so that nobody lists folders. Pure values.
"""

from dataclasses import dataclass
from typing import Any, Literal

from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.store import is_own_name

Kind = Literal["upserts", "diffs"]
MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One immutable run of a trace's updates in a range of hashes for epochs [lower, upper); `path` is relative to the home."""

    trace: TraceName
    range: HashRange
    lower: Epoch
    upper: Epoch
    kind: Kind
    path: str
    rows: int
    bytes: int
    checksum: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"range": str(self.range)}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "LayerInfo":
        """`ValueError` or `TypeError` where the facts are none of a layer."""
        layer = LayerInfo(**entry | {"range": HashRange.parse(entry["range"])})
        numbers = (layer.lower, layer.upper, layer.rows, layer.bytes)
        if not all(type(number) is int and 0 <= number < MOST for number in numbers) or layer.lower >= layer.upper:
            raise ValueError(f"no layer has the numbers {numbers}")
        if layer.kind not in ("upserts", "diffs") or not is_own_name(layer.path) or not type(layer.trace) is type(layer.checksum) is str:
            raise ValueError(f"no layer has the name {layer.path!r}")
        return layer


Covers = dict[HashRange, tuple[LayerInfo, ...]]
"""By range of hashes, the layers that hold a trace's state as of some epoch, newest first."""

TraceRange = tuple[TraceName, HashRange]
"""A trace's part in a range of hashes."""
