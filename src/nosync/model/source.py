"""What a source is: small enough to write one's own, without a base class.

A source hands out *slices*: JSON objects that say which rows belong to an epoch. The journal records a slice before it is read, and may
ask for it again at any later time: reading a slice always gives the same rows. Nobody but the source looks into its slices; it is given
them as they come out of JSON.

`Source` is what every source has. Each of the protocols after it is one more ability; a source has it by having its method, and `bound`
(see `model.bound`) finds out once, when the source becomes part of a flow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nosync.model.identifiers import Epoch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Slice = dict[str, Any]
"""Which rows of a source belong to an epoch. Only the source looks inside."""


class Marks(Protocol):
    """What a source said by `marks` that it must not take twice."""

    def among(self, texts: Sequence[str]) -> set[str]:
        """Which of the texts are marks of a slice that was taken."""


class Taken(Iterable[Slice], Protocol):
    """All slices of a source that are recorded, in order. Reading them all takes time after many epochs; the rest does not."""

    @property
    def latest(self) -> Slice | None:
        """The last one."""

    @property
    def marks(self) -> Marks: ...

    @property
    def skipped(self) -> frozenset[str]:
        """What somebody has set aside (`nosync skip`), such as files: not to be taken, and not to be read where it was."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a query of Structured Streaming has read a source: its `offset`, the text that Spark has in the checkpoint, the `files` that
    it has taken, by their addresses (None where it reads no files), and what the source has `kept` in the checkpoint in small files of its
    own, by name.
    """

    offset: str
    files: tuple[str, ...] | None = None
    kept: Mapping[str, str] = field(default_factory=dict)


class Source(Protocol):
    """Where rows come from."""

    @property
    def append_only(self) -> bool:
        """Whether rows are only ever added. Minimum and maximum are cheaper then."""

    def declare(self, name: str, spark: "SparkSession") -> "StructType":
        """Called once, at declaration: checks the settings and says what the rows look like."""

    def start(self, folder: Path, taken: Taken) -> None:
        """Called when a run starts, and again if epochs had to be rolled back. `folder` is the source's own place in the home."""

    def available(self) -> Slice | None:
        """What is there and not taken yet, up to the source's own limit for one epoch; None for nothing. The caller takes it."""

    def read(self, spark: "SparkSession", slice: Slice) -> "DataFrame":
        """The rows of a slice: the declared columns, and last `_diff` (1 for added, -1 for removed)."""


@runtime_checkable
class Counted(Protocol):
    """Knows how many rows a slice has without reading it."""

    def rows(self, slice: Slice) -> int | None:
        """None where it is not known of this one."""


@runtime_checkable
class Weighed(Protocol):
    """Knows about how many bytes a slice brings: that decides how it is processed, never what comes out."""

    def weight(self, slice: Slice) -> int: ...


@runtime_checkable
class Limited(Weighed, Protocol):
    """Can take less at a time than there is: with `trigger={"latency": ...}` an epoch brings no more than can be seen in time."""

    def allow(self, weight: int | None) -> None:
        """From the next slice on at most about so much, by its `weight`, and never nothing; None for what was declared."""


def rows_within(weight: int | None, bytes_of_a_row: int) -> int | None:
    """For `allow`: how many rows weigh about so much, at least one."""
    return None if weight is None else max(1, weight // bytes_of_a_row)


@runtime_checkable
class Marked(Protocol):
    """Must know all it ever gave, such as the names of files, but need not read all slices for that when it starts."""

    def marks(self, slice: Slice) -> Iterable[str]:
        """What must not be taken twice. `Taken.marks` says later whether it was."""


@runtime_checkable
class Trimmable(Protocol):
    """Gives up input that nobody will ask for again. The input of any other source stays for ever, and everything can be recomputed."""

    def trim(self, slice: Slice) -> None:
        """May be called twice."""


@runtime_checkable
class ReadOnce(Protocol):
    """Cannot read a slice again for ever: the flow keeps its rows in the home."""

    def acknowledge(self, slice: Slice) -> None:
        """The rows are on every tier, in an epoch that is computed: `read` will not be asked for them again. Until then it may be, after a
        failed write or by the next run, whose `start` says what was recorded (`Taken.latest`). May be called twice."""


@runtime_checkable
class Tabular(Protocol):
    """Can give the rows of a slice without Spark."""

    def table(self, slice: Slice) -> "pa.Table | None":
        """As `read`; None where this one needs Spark."""


@runtime_checkable
class Rejecting(Protocol):
    """Sets rows aside that do not fit its schema. They go to the view `<source>.rejected`."""

    def rejects(self, slice: Slice) -> int:
        """How many are known without reading. Those found while reading are counted by observing `rejected` as `files` does."""

    def rejected(self, spark: "SparkSession", slice: Slice, epoch: Epoch) -> "DataFrame":
        """`raw`, `reason`, `file`, `epoch` and `_diff` of all that were rejected."""


@runtime_checkable
class Reopenable(Protocol):
    """May find that what it gave cannot be read as it was recorded. It raises `Unreadable` then; while the epoch is not computed, it is
    recorded anew."""

    def reopen(self, slice: Slice, unreadable: Mapping[str, str]) -> Slice:
        """The slice as it can be read now. `unreadable` are files that could not be read, with the reason."""


@runtime_checkable
class InFolder(Protocol):
    """Reads files that lie in a folder of somebody else. It is recorded, so that `nosync fsck` and `nosync skip` know them without the
    program; `sources.listing` reads the slices then."""

    def folder(self) -> str:
        """Its absolute path."""


@runtime_checkable
class Fetching(Protocol):
    """Brings what it reads into the home, where tasks read it: executors must see that."""

    def fetches_into(self) -> str:
        """The folder in the home. Asked after `start`."""


@runtime_checkable
class DirectlyReadable(Protocol):
    """Has Parquet files that tasks may read columns from without Spark."""

    def direct(self, slice: Slice) -> Sequence[str]:
        """The files, all rows of which are added; none where this slice must be read by `read`."""


@runtime_checkable
class Joinable(Protocol):
    """Can read several slices at once for less than one after the other."""

    def together(self, slices: Sequence[Slice]) -> Slice:
        """One slice with the rows of all. It is read, and never recorded."""


@runtime_checkable
class Ordered(Protocol):
    """Knows in which order its rows came, so that of two changes of a key the later one counts."""

    def events(self, spark: "SparkSession", slice: Slice) -> "DataFrame":
        """As `read`, with more columns before `_diff`: `_raw`, `_reason` and `_file` of rows that do not fit, null for all others, and
        the position of each (`_p0`, `_p1`, `_p2`: whole numbers, compared from left to right)."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """Rows that need no Spark to be had, and what Spark makes of them: always the same, so that it need not be planned for each epoch.

    `schema` is that of `table`, which may be None for a slice that needs Spark after all; `shape` gives what `read` does (or `events`).
    `unfit` names one more column, the first, that is null but in rows that do not fit: those are counted, and left out.
    """

    schema: "StructType"
    table: "Callable[[Slice], pa.Table | None]"
    shape: "Callable[[DataFrame], DataFrame]"
    unfit: str = ""


@runtime_checkable
class Shaping(Protocol):
    """Can give few rows without a job of Spark's, and leaves to Spark only what need not be planned for each epoch."""

    def shaped(self) -> Shaped:
        """What `read` gives. Called after `declare`."""

    def shaped_events(self) -> Shaped:
        """What `events` gives: rows that do not fit are among them."""


@runtime_checkable
class Keyed(Protocol):
    """Knows by which columns its rows differ: what `flow.source(..., key=)` says where the user says nothing."""

    def keys(self) -> Sequence[str]:
        """After `declare`; empty where there are none."""


@runtime_checkable
class Lagging(Protocol):
    """Knows how much there is that no epoch has taken. Shown in the progress."""

    def lag(self) -> dict[str, int]:
        """By partition, or whatever the source has of that kind, in its own measure. Does not ask anybody: as of the last look."""


@runtime_checkable
class Announcing(Protocol):
    """Knows itself when there is something new: nobody has to look for it again and again."""

    def on_arrival(self, wake: Callable[[], None]) -> None:
        """A run reads it from now on: `wake` is to be called after each arrival, from any thread, once `available` would give it. It comes
        back at once. Called again for the next run, and with what does nothing when a run ends."""


@runtime_checkable
class Closing(Protocol):
    """Holds something while a run reads it: a connection, a reader."""

    def close(self) -> None:
        """The run has ended. `start` may follow."""


@runtime_checkable
class Continuing(Protocol):
    """Can go on where a query of Structured Streaming has stopped (`nosync import`)."""

    def continue_from(self, position: Position) -> Slice:
        """A slice without rows, behind which comes what the query has not read. `Invalid` where the position is nothing of this source.
        Called after `declare`, before `start`; the slice is recorded, and never read."""


@runtime_checkable
class Addressed(Protocol):
    """Knows where it reads, so that a flow is refused that would read what it writes."""

    def would_read(self, address: str) -> bool:
        """Whether what is written there by a sink (see `model.sink.Addressed`) would be read as input."""


ABILITIES = (
    Counted, Weighed, Limited, Marked, Trimmable, ReadOnce, Tabular, Rejecting, Reopenable, InFolder, DirectlyReadable, Joinable, Ordered,
    Shaping, Keyed, Lagging, Announcing, Closing, Continuing, Fetching, Addressed,
)  # fmt: skip
"""All that a source may have besides."""
