"""What computes epochs. The real one runs Spark jobs; the simulation has one of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Covers, Kind, LayerInfo
from nosync.model.watermark import History, Seen, nothing_seen

CoversOf = Callable[[TraceName], Covers]
Targets = Mapping[TraceName, frozenset[HashRange]]
"""Some ranges of some traces. Those of one trace do not overlap; they need not be shards of today."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The layers of an epoch, rows and rejected rows by source, and whatever else is worth reporting.

    `seen` is the newest event time by source, `late` the rows by trace whose window had closed. `way`: how it was
    computed.
    """

    layers: tuple[LayerInfo, ...]
    rows: dict[str, int]
    rejected: dict[str, int]
    receipts: Sequence[Any] = ()
    seen: Seen = field(default_factory=dict)
    late: dict[TraceName, int] = field(default_factory=dict)
    way: str = ""


class Engine(Protocol):
    """A pure function of recorded input and earlier state, apart from the layers that it writes under names never used before."""

    def prepare(self, opened: Any) -> None:
        """Called with an epoch that will be computed next, while the one before is: what takes time and needs no state can be done now."""

    def compute(
        self,
        openings: Sequence[Any],
        covers: CoversOf,
        targets: Targets | None = None,
        seen: History = nothing_seen,
    ) -> Outcome:
        """The layers of consecutive epochs, as if they were one. `targets`: only these ranges of these traces are written; else all.
        `seen`: the event times before an epoch."""

    def blank(self, trace: TraceName, range: HashRange, lower: Epoch, upper: Epoch, kind: Kind) -> LayerInfo:
        """A layer without updates for epochs [lower, upper): says that together they changed nothing."""
