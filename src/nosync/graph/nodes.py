"""The nodes of a flow's graph: sources, operators and views.

A node computes a collection: each epoch its change is a DataFrame of its columns followed by, where the rows are still sharded
by shard, `_hash`, and last `_diff`. Nodes own templates; only operators, and views without a backing, own traces.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java
from nosync.graph.operators import AccumulateNode, GatheredNode, Operator
from nosync.graph.templates import Branch, Template
from nosync.model.identifiers import TraceName


@dataclass(eq=False, slots=True)
class SourceNode:
    """A source, or a static table, whose rows all come with the first epoch and are known by their `version`.

    `time` is the column of its event time, whose rows may be late by `delay` microseconds; `stamp` the one that says when rows came.
    """

    name: str
    schema: StructType
    append_only: bool
    static: Java | None = None
    version: str = ""
    sharded: bool = False
    time: str | None = None
    delay: int | None = None
    stamp: str | None = None


@dataclass(frozen=True, slots=True)
class Derived:
    """The columns of a view as expressions over `inputs`, which are columns of an earlier view by their places."""

    columns: tuple[Java, ...]
    inputs: Mapping[int, Java]


@dataclass(eq=False, slots=True)
class ViewNode:
    """A named view. `backing` says which columns of an accumulate operator are its rows; without one it keeps rows of its own, under the
    name `kept` (else a name after the view's). `hashed`: the columns that say where its rows lie, in order, if they are known.

    `rows` says which rows these are, and `marks` what each column is among them, however they are called. Rows are kept with the columns
    in the order `stored`, which follows from their marks. `derive`: its columns over others of the same rows, which are known by their
    marks; None where these do not suffice.
    """

    name: str
    body: Template
    schema: StructType
    backing: "Backing | None" = None
    feed: Branch | None = None
    payload: pa.Schema | None = None
    kept: str = ""
    hashed: tuple[int, ...] = ()
    rows: str = ""
    marks: tuple[str, ...] = ()
    stored: tuple[int, ...] = ()
    fingerprint: str = ""
    derive: Callable[[Mapping[str, int]], Derived | None] | None = None

    @property
    def sharded(self) -> bool:
        return self.body.sharded

    @property
    def append_only(self) -> bool:
        return self.body.append_only

    @property
    def trace(self) -> TraceName:
        """The trace that holds its rows."""
        return TraceName(self.backing.node.name if self.backing else self.kept or f"{self.name}/rows")


@dataclass(eq=False, slots=True)
class Backing:
    """The view is these columns (keys first, then results) of the operator's state."""

    node: "AccumulateNode"
    columns: list[int]


Node = SourceNode | Operator | GatheredNode | ViewNode
