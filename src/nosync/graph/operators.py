"""Operators: nodes that keep state, known by their names.

Here stand what all kinds have in common, and the two kinds that several rules of the compiler make. Every other kind stands with the rule
that makes it; `spark.operators` says how each runs.
"""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java
from nosync.graph.templates import Branch, Template, holes
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import FUNCTIONS
from nosync.kernels.top import Limit
from nosync.model.identifiers import TraceName
from nosync.model.picture import CHANGE, GROUPS, Description
from nosync.model.watermark import EventClock, Expiry


@dataclass(eq=False, slots=True, kw_only=True)
class Operator:
    """A node that keeps state, known by its name. `feed` is what goes to its shards, `schema` the columns of its change.

    Each kind is a subclass in `operators` or beside what makes it; `spark.steps` says how it runs. `expiries` say, trace by trace,
    which state is of no use any more; `clock` is there where it goes by event time of its own.
    """

    name: str
    feed: Template
    schema: StructType
    view: str = ""
    append_only: bool = False
    sharded: bool = True
    plan: Java = None
    expiries: tuple[Expiry | None, ...] = ()
    clock: EventClock | None = None

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
    def row_over_nothing(self) -> bool:
        """Whether it has a row even over no input."""
        return False

    @property
    def time_driven(self) -> bool:
        """Whether event time alone changes it, without input."""
        return False

    @property
    def kind(self) -> str:
        """What people call it."""
        return type(self).__name__.removesuffix("Node").lower()

    @property
    def description(self) -> Description:
        """What it keeps, why, and what an epoch costs: printed by `flow.explain()`. Each kind describes itself."""
        return Description("state by key")

    @property
    def record(self) -> TraceName | None:
        """The trace that holds what it emitted, where computing it again might come out differently: a replay reads it there."""
        return None

    @property
    def stepwise(self) -> bool:
        """Whether several epochs in one job would come out differently from one after the other."""
        return False


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """An operator's keys and inputs where they are no more than columns of one source: tasks may then read those themselves."""

    source: str
    keys: tuple[str, ...]
    inputs: tuple[str, ...]


@dataclass(eq=False, slots=True, kw_only=True)
class AccumulateNode(Operator):
    """An aggregate kept as accumulators. Its change: keys, results."""

    spec: Accumulation
    source_columns: SourceColumns | None = None

    @property
    def row_over_nothing(self) -> bool:
        return self.spec.whole

    @property
    def description(self) -> Description:
        if not self.spec.results:
            return Description("how often each row occurs", "a row stays until its last duplicate is removed", CHANGE)
        grows = sorted({result.function for result in self.spec.results if FUNCTIONS[result.function].add_only(result.type)})
        why = f"{' and '.join(grows)} over rows that are only added" if grows else "they can be added to and taken from exactly"
        return Description("accumulators by key", why, CHANGE)


@dataclass(eq=False, slots=True)
class GatheredNode:
    """The whole rows of touched groups, on their way from the log into Spark."""

    name: str
    schema: StructType
    sharded: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class RegroupNode(Operator):
    """What Spark recomputes for the touched groups. `columns` are those of the rows that it keeps. `empty` gives its row over no input
    where it has no key.

    `announced`: every touched group gets a ghost, since a group that is alive may have no result. `limit`: only the first rows of a
    group are recomputed, in the order of `o0`, `o1`... `why` says in words what keeps it from being accumulated. `closing`: of results that
    do not show their key, the number of the key that says when their group closes.
    """

    evaluate: Branch
    gathered: GatheredNode
    columns: list[Java]
    payload: pa.Schema
    results: pa.Schema
    empty: Java | None = None
    announced: bool = False
    limit: Limit | None = None
    why: str = ""
    closing: int | None = None

    @property
    def traces(self) -> tuple[TraceName, ...]:
        return TraceName(f"{self.name}/rows"), self.trace

    @property
    def read_again(self) -> bool:
        """Whether what is gathered is read more than once."""
        return sum(1 for _ in holes(self.evaluate)) > 1

    @property
    def row_over_nothing(self) -> bool:
        return self.empty is not None

    @property
    def description(self) -> Description:
        if self.limit is not None:
            why = f"behind the first {self.limit.k} others wait, to come up when one of them goes"
            keeps = "the rows of each group in their order, and the first of them"
            return Description(keeps, why, "in proportion to the change and the limit")
        return Description("the rows of each group, and its last result", self.why, GROUPS)
