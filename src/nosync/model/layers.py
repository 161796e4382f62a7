"""What is known of a layer without opening it.

Written into receipts and journal entries, so that nobody lists folders. Pure values.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal
from zlib import crc32

from nosync.model.hash_range import HashRange, remainder
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.places import HOME, Place, is_place
from nosync.model.store import is_own_name

Kind = Literal["upserts", "diffs"]
MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One immutable run of a trace's updates in a range of hashes for epochs [lower, upper); `path` is relative to the home.

    In a *versioned* layer rows keep their epochs: it was made with so many `versions`, and the state can be read as of any epoch within
    that is kept (see `retention.Kept`), but for those `blind`: from the first of each pair on, up to before the second. It may begin with
    epochs that changed nothing: `first` is the first that did. `until` is set where a cover takes only the epochs before that; it is not
    recorded. `leaves` tells the leaf layers that it was made of (see `leaves_of`). Nothing of the trace lies before a layer that is said
    to be at its `bottom`. `place`: where it was written, if not in the home (see `places`). `without` these ranges of hashes: for them it
    was given up, others stand for it there.
    """

    trace: TraceName
    range: HashRange
    lower: Epoch
    upper: Epoch
    kind: Kind
    path: str
    rows: int
    bytes: int
    checksum: str
    versions: int = 0
    blind: tuple[tuple[Epoch, Epoch], ...] = ()
    first: Epoch = NO_EPOCH
    leaves: int = 0
    bottom: bool = False
    until: Epoch = NO_EPOCH
    place: Place = HOME
    without: tuple[HashRange, ...] = ()

    @property
    def reach(self) -> HashRange:
        """Its range, but for what it was given up for at either end."""
        if not self.without:
            return self.range
        left = remainder(self.range, self.without) or [self.range]
        return HashRange(min(part.lower for part in left), max(part.upper for part in left))

    @property
    def begin(self) -> Epoch:
        """The first epoch with an update."""
        return self.first or self.lower

    @property
    def end(self) -> Epoch:
        """Behind the last epoch that is read."""
        return self.until or self.upper

    def before(self, until: Epoch) -> "LayerInfo":
        """The part for epochs before this one."""
        return replace(self, until=until)

    def to_json(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in ("trace", "lower", "upper", "kind", "path", "rows", "bytes", "checksum")}
        versioned = {"versions": self.versions, "blind": self.blind, "first": self.first, "leaves": self.leaves} if self.versions else {}
        rest: dict[str, Any] = ({"bottom": True} if self.bottom else {}) | ({"place": self.place} if self.place else {})
        rest |= {"without": [str(part) for part in self.without]} if self.without else {}
        return {**facts, "range": str(self.range), **versioned, **rest}

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "LayerInfo":
        """`ValueError` or `TypeError` where the facts are none of a layer."""
        blind = tuple((Epoch(first), Epoch(last)) for first, last in entry.get("blind", ()))
        without = tuple(map(HashRange.parse, entry.get("without", ())))
        layer = LayerInfo(**entry | {"range": HashRange.parse(entry["range"]), "blind": blind, "without": without})
        numbers = [layer.lower, layer.upper, layer.rows, layer.bytes, layer.versions, layer.first, layer.leaves, layer.until]
        numbers += [end for pair in blind for end in pair]
        if not all(type(number) is int and 0 <= number < MOST for number in numbers) or layer.lower >= layer.upper:
            raise ValueError(f"no layer has the numbers {numbers}")
        if layer.kind not in ("upserts", "diffs") or type(layer.bottom) is not bool or not is_own_name(layer.path):
            raise ValueError(f"no layer has the name {layer.path!r}")
        if layer.place != HOME and not is_place(layer.place):
            raise ValueError(f"no layer lies at {layer.place!r}")
        if not type(layer.trace) is type(layer.checksum) is str:
            raise ValueError(f"no layer has the name {layer.path!r}")
        return layer


def leaves_of(layers: Iterable[LayerInfo]) -> int:
    """A number that says of which leaf layers these are, or were made: the sum of what their names hash to."""
    return sum(layer.leaves if layer.versions else crc32(layer.path.encode()) for layer in layers) % (1 << 48)


Covers = dict[HashRange, tuple[LayerInfo, ...]]
"""By range of hashes, the layers that hold a trace's state as of some epoch, newest first."""

TraceRange = tuple[TraceName, HashRange]
"""A trace's part in a range of hashes."""
