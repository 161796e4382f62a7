"""What is known of a layer without opening it.

Written into receipts and journal entries, so that nobody lists folders. Pure values.
"""

from dataclasses import dataclass
from typing import Any, Literal

from nosync.model.identifiers import Epoch, Shard, TraceName

Kind = Literal["upserts", "diffs"]


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One immutable run of a trace's updates in a shard for epochs [lower, upper); `path` is relative to the home."""

    trace: TraceName
    shard: Shard
    lower: Epoch
    upper: Epoch
    kind: Kind
    path: str
    rows: int
    bytes: int
    checksum: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "LayerInfo":
        return LayerInfo(**entry)


Covers = dict[Shard, tuple[LayerInfo, ...]]
"""By shard, the layers that hold a trace's state as of some epoch, newest first."""
