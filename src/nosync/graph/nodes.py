"""The operator graph that a flow's queries become.

A node computes a collection: each epoch its change is a DataFrame of its columns followed by, where the rows are still placed
by shard, `_hash`, and last `_diff`. A template is a piece of Spark's plan with holes where the changes of other nodes go.
Nodes own templates; only stateful nodes own traces.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Catalyst, Java, Target
from nosync.model.identifiers import TraceName
from nosync.model.picture import Account
from nosync.model.watermark import Expiry, Moment

if TYPE_CHECKING:
    from nosync.graph.operators import AccumulateNode

DIFF = "_diff"
HASH = "_hash"
ROW = "_row"
GHOST = "_ghost"
GROUP = "_group"
SIDE = "_side"
TELLS = "_tells"


@dataclass(eq=False, slots=True)
class Hole:
    """Where the change of a node goes: its columns take the place of these attributes, one by one."""

    node: "Node"
    attributes: list[Java]
    _targets: list[Target] | None = None

    def targets(self) -> list[Target]:
        if self._targets is None:
            self._targets = [Target.of(attribute) for attribute in self.attributes]
        return self._targets


@dataclass(eq=False, slots=True)
class Branch:
    """A node of Spark's plan over other pieces."""

    plan: Java
    children: list["Piece"]

    def filled(self, catalyst: Catalyst, below: list[Java], moment: Moment) -> Java:
        """The plan over its children's."""
        return catalyst.with_children(self.plan, below)


Piece = Hole | Branch


@dataclass(eq=False, slots=True)
class Template:
    """A stateless piece of a plan. `placed`: its rows still lie where their `_hash` put them, and carry it."""

    piece: Piece
    output: list[Java]
    carried: list[Java]
    append_only: bool
    fingerprint: str = ""

    @property
    def placed(self) -> bool:
        return len(self.carried) == 2

    def under(self, plan: Java, output: list[Java] | None = None) -> "Template":
        """With one more node of Spark's plan on top, which passes on what is carried; it has the same columns unless told otherwise."""
        return Template(Branch(plan, [self.piece]), self.output if output is None else output, self.carried, self.append_only)


def holes(piece: Piece) -> Iterator[Hole]:
    """The holes of a template, left to right."""
    if isinstance(piece, Hole):
        yield piece
    else:
        for child in piece.children:
            yield from holes(child)


@dataclass(eq=False, slots=True)
class SourceNode:
    """A source, or a static table (whose rows all come with the first epoch).

    `time` is the column of its event time, whose rows may be late by `delay` microseconds; `stamp` the one that says when rows came.
    """

    name: str
    schema: StructType
    append_only: bool
    static: Java | None = None
    placed: bool = False
    time: str | None = None
    delay: int | None = None
    stamp: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Operator:
    """A node that keeps state, known by its name. `feed` is what goes to its shards, `schema` the columns of its change.

    Each kind is a subclass in `operators` or beside what makes it; `spark.steps` says how it runs. `expiries` say, trace by trace,
    which state is of no use any more.
    """

    name: str
    feed: Template
    schema: StructType
    view: str = ""
    append_only: bool = False
    placed: bool = True
    plan: Java = None
    expiries: tuple[Expiry, ...] = ()

    @property
    def fingerprint(self) -> str:
        return self.feed.fingerprint

    @property
    def trace(self) -> TraceName:
        """The trace that has the operator's own name."""
        return TraceName(self.name)

    @property
    def traces(self) -> tuple[TraceName, ...]:
        """All that it keeps state in."""
        return (self.trace,)

    @property
    def whole(self) -> bool:
        """Whether it has a row even over no input."""
        return False

    @property
    def ticks(self) -> bool:
        """Whether event time alone changes it, without input."""
        return False

    @property
    def kind(self) -> str:
        """What people call it."""
        return type(self).__name__.removesuffix("Node").lower()

    @property
    def account(self) -> Account:
        """What it keeps, why, and what an epoch costs: `flow.explain()` tells it. Each kind speaks for itself."""
        return Account("state by key")

    @property
    def record(self) -> TraceName | None:
        """The trace that holds what it told, where telling again might come out differently: a replay reads it there."""
        return None

    @property
    def stepwise(self) -> bool:
        """Whether several epochs in one job would come out differently from one after the other."""
        return False


@dataclass(eq=False, slots=True)
class GatheredNode:
    """The whole rows of touched groups, on their way from the log into Spark."""

    name: str
    schema: StructType
    placed: bool = False


@dataclass(eq=False, slots=True)
class ViewNode:
    """A named view. `backing` says which columns of an accumulate operator are its rows; without one it keeps rows of its own, under the
    name `kept` (else a name after the view's).
    """

    name: str
    body: Template
    schema: StructType
    backing: "Backing | None" = None
    feed: Branch | None = None
    payload: pa.Schema | None = None
    kept: str = ""

    @property
    def placed(self) -> bool:
        return self.body.placed

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


@dataclass(eq=False, slots=True)
class Graph:
    """All nodes of a flow, in order of declaration; inputs stand before what uses them."""

    sources: dict[str, SourceNode] = field(default_factory=dict)
    statics: list[SourceNode] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    views: dict[str, ViewNode] = field(default_factory=dict)
    sinks: dict[str, ViewNode] = field(default_factory=dict)

    @property
    def queries(self) -> list[ViewNode]:
        """Views and sinks: what the user asked for."""
        return [*self.views.values(), *self.sinks.values()]

    def consumers(self) -> dict[int, int]:
        """How many places use each node's change, by identity."""
        counts: dict[int, int] = {}
        templates: list[Sequence[Hole]] = [list(holes(op.feed.piece)) for op in self.operators]
        templates += [list(holes(view.body.piece)) for view in self.queries if self._needed(view)]
        for hole in (hole for found in templates for hole in found):
            counts[id(hole.node)] = counts.get(id(hole.node), 0) + 1
        for view in self.queries:
            if view.feed is not None:
                counts[id(view)] = counts.get(id(view), 0) + 1
        return counts

    def _needed(self, view: ViewNode) -> bool:
        """Whether the view's change has to be computed: it keeps rows of its own, or another query reads it."""
        if view.feed is not None:
            return True
        pieces = [op.feed.piece for op in self.operators] + [v.body.piece for v in self.queries if v is not view]
        return any(hole.node is view for piece in pieces for hole in holes(piece))
