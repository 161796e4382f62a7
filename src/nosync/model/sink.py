"""What a sink is: where the changes of a query go, and what it promises. Small enough to write one's own, without a base class."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from nosync.model.errors import Fenced
from nosync.model.identifiers import Epoch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from nosync.model.safety import Release

Guarantee = Literal["precise", "repeating", "convergent", "divergent", "gap"]
Fencing = Literal["none", "checked", "atomic"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What a sink's output promises after a failure, and the weakest link that decides it.

    `fencing` is what becomes of an epoch that a run still delivers after a newer one took over. "none": it arrives. "checked": the sink
    looks for a newer run before each epoch, so one under way may arrive. "atomic": the target itself refuses it.
    """

    guarantee: Guarantee
    reason: str
    fencing: Fencing = "none"

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.reason} (fencing: {self.fencing})"

    def _repr_html_(self) -> str:
        return f"<b>{escape(self.guarantee)}</b>: {escape(self.reason)} <i>(fencing: {escape(self.fencing)})</i>"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose output a target gets. `history` is the same for all runs that go on with one another, and of no other home: two histories in
    one target are nobody's output, so a sink marks its target with this and refuses one that is marked otherwise.
    """

    flow: str
    sink: str
    history: str


class Changes(Protocol):
    """An epoch's output: the query's columns, `_epoch`, and `_diff` (how often a row comes, negative: goes). Always the same rows in the
    same order, whenever the epoch is delivered."""

    @property
    def epoch(self) -> int: ...

    @property
    def empty(self) -> bool:
        """Whether the epoch changes nothing."""

    @property
    def schema(self) -> "pa.Schema": ...

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Block by block, for more than fits into memory."""

    def table(self) -> "pa.Table": ...

    def frame(self) -> "DataFrame":
        """An ordinary DataFrame that reads the rows when it is used."""


class Sink(Protocol):
    """What a user passes to `flow.sink`. One run uses it from one thread at a time."""

    @property
    def promise(self) -> Promise:
        """What the output promises after a failure as far as this sink is concerned."""

    def open(self, run: str, identity: Identity) -> None:
        """Called when a run starts, before anything else: checks that the target can be written and belongs to this output. `run` is the
        id of the run; the number before its first dot is greater for a later run."""

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        """All of an epoch's output; epochs come in order, and but for the first only those that change something (see `CalledAlways`).
        Where the sink has a pace of its own, several may come as one, with the number of the last; if they come again, then as the same
        one. Raise `Unavailable` to be given it again later, `Fenced` if a newer run writes there; anything else ends the run, and the next
        one delivers the epoch again. A run that is stopped gives a delivery under way some seconds to come back."""

    def close(self) -> None:
        """Called once when the run ends, however it ends, and never while `deliver` is under way. Nothing is delivered after it. If
        `deliver` does not come back, this is not called at all; `run.status` says so then."""


@runtime_checkable
class Choosy(Protocol):
    """A sink that not every query can go to."""

    def check_query(self, sink: str, schema: "pa.Schema", corrects: Sequence[str]) -> None:
        """Called at declaration: `Invalid` or `Refused` where the query has no place here. `corrects` are the names of the operators that
        take back rows which they gave; none where rows are only ever added."""


@dataclass(frozen=True, slots=True)
class Terms:
    """When a sink gets an epoch: once it has come as far as `release` says, and at most `every` so many seconds. `together`: all that has
    come since the last time is one change then, under the number of its last epoch; else the epochs come one after another. `unchanged`:
    it gets epochs that change nothing, too.
    """

    release: "Release"
    every: float = 0.0
    together: bool = False
    unchanged: bool = False


@runtime_checkable
class EpochByEpoch(Protocol):
    """A sink that may show each epoch by itself."""

    @property
    def every_epoch(self) -> bool:
        """Whether it does: then it gets each by itself, at any pace."""


@runtime_checkable
class CalledAlways(Protocol):
    """A sink that may be called for epochs that change nothing, too."""

    @property
    def unchanged_epochs(self) -> bool:
        """Whether it is. Otherwise those are passed over, but for the first that it gets: then it may make its target."""


@runtime_checkable
class Addressed(Protocol):
    """A sink that knows where it writes, so that a flow is refused that would read what it writes."""

    def addresses(self) -> Sequence[str]:
        """The path of a file, as it may be called, or the address of a table: what a source would know it by."""


def _nowhere() -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class BoundSink:
    """A sink as part of a flow: what it can do besides, found out once. `check_query` is None where any query can go to it."""

    sink: Sink
    release: "Release"
    every: float = 0.0
    every_epoch: bool = False
    unchanged_epochs: bool = False
    check_query: "Callable[[str, pa.Schema, Sequence[str]], None] | None" = None
    addresses: Callable[[], Sequence[str]] = _nowhere

    @property
    def terms(self) -> Terms:
        return Terms(self.release, self.every, self.every > 0 and not self.every_epoch, self.unchanged_epochs)


def bound_sink(sink: Sink, release: "Release", every: float = 0.0) -> BoundSink:
    """What the sink can do. The only place that asks for it."""
    return BoundSink(
        sink,
        release,
        every,
        every_epoch=isinstance(sink, EpochByEpoch) and sink.every_epoch,
        unchanged_epochs=isinstance(sink, CalledAlways) and sink.unchanged_epochs,
        check_query=sink.check_query if isinstance(sink, Choosy) else None,
        addresses=sink.addresses if isinstance(sink, Addressed) else _nowhere,
    )


class Outlet(Protocol):
    """Takes the output of a flow's sinks, in the order of epochs."""

    def precise(self, sink: str) -> bool:
        """Whether the sink makes nothing of an epoch that it had before."""

    def deliver(self, sink: str, first: Epoch, last: Epoch) -> None:
        """All of the output of these epochs, as one change of the last. `Unavailable` means: try the same again later."""


def overtaken(target: str) -> Fenced:
    """What a sink raises that finds a newer run at its target."""
    return Fenced(f"{target} is written by a newer run", hint="Stop this process: that one took over.")
