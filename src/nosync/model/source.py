"""What a source must be able to do. Small enough to write one's own.

A source hands out *slices*: JSON values that say which rows belong to an epoch. The journal records a slice before it is read, and may ask
for it again at any later time: reading a slice always gives the same rows.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Slice = dict[str, Any]


class Source(Protocol):
    """Where rows come from.

    A source that must know all it ever gave, such as the names of files, has a method `marks(slice)` that names what must not be taken
    twice: it then need not read all slices when it starts.

    Two more attributes may say what a source cannot or need not do: `replayable = False` for one that can read a slice only once (the
    flow then keeps its
    rows in the home), `trims = False` for one whose input stays for ever, so that `trim` is never called and everything can be recomputed.
    A source of changes may name the columns `changes` and `sequence` (see `flow.changing`), and with `events(spark, slice)` say more than
    `read` does: the columns, `_raw`, `_reason` and `_file` of rows that are no changes, their order (`_p0`, `_p1`, `_p2`), `_diff`.
    """

    @property
    def append_only(self) -> bool:
        """Whether rows are only ever added. Minimum and maximum are cheaper then."""

    def declare(self, name: str, spark: "SparkSession") -> "StructType":
        """Called once, at declaration: checks the settings and says what the rows look like."""

    def start(self, folder: Path, taken: Iterable[Slice]) -> None:
        """Called when a run starts, and again if epochs had to be rolled back. `folder` is the source's own place in the home; `taken`
        all slices recorded so far, in order. Reading them all takes time after many epochs; `taken.latest` is the last one or None, and
        `taken.marks.among(names)` says which of some names are marks of a slice.
        """

    def available(self) -> Slice | None:
        """What is there and not taken yet, up to the source's own limit for one epoch; None for nothing. The caller takes it."""

    def read(self, spark: "SparkSession", slice: Slice) -> "DataFrame":
        """The rows of a slice: the declared columns, and last `_diff` (1 for added, -1 for removed)."""

    def rows(self, slice: Slice) -> int | None:
        """How many rows the slice has, where that is known without reading."""

    def weight(self, slice: Slice) -> int:
        """About how many bytes the slice brings: decides how it is processed, never what comes out."""

    def trim(self, slice: Slice) -> None:
        """Nobody will ask for this slice again. May be called twice."""
