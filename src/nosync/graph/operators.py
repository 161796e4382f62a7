"""The operators that most queries come down to."""

from dataclasses import dataclass

import pyarrow as pa

from nosync.bridge.catalyst import Java
from nosync.graph.nodes import Branch, GatheredNode, Operator
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.join import Joining
from nosync.kernels.matching import Matching
from nosync.kernels.top import Limit
from nosync.model.identifiers import TraceName
from nosync.model.picture import CHANGE, GROUPS, Account


@dataclass(frozen=True, slots=True)
class Plain:
    """An operator's keys and inputs where they are no more than columns of one source: tasks may then read those themselves."""

    source: str
    keys: tuple[str, ...]
    inputs: tuple[str, ...]


@dataclass(eq=False, slots=True, kw_only=True)
class AccumulateNode(Operator):
    """An aggregate kept as accumulators. Its change: keys, results."""

    spec: Accumulation
    plain: Plain | None = None

    @property
    def whole(self) -> bool:
        return self.spec.whole

    @property
    def account(self) -> Account:
        if not self.spec.results:
            return Account("how often each row occurs", "a row stays until its last duplicate is removed", CHANGE)
        grows = sorted({result.function for result in self.spec.results} & {"min", "max", "and", "or", "first"})
        why = f"{' and '.join(grows)} over rows that are only added" if grows else "they can be added to and taken from exactly"
        return Account("accumulators by key", why, CHANGE)


@dataclass(eq=False, slots=True, kw_only=True)
class RegroupNode(Operator):
    """What Spark recomputes for the touched groups. `empty` gives its row over no input where it has no key.

    `announced`: every touched group gets a ghost, since a group that is alive may have no result. `limit`: only the first rows of a
    group are recomputed, in the order of `o0`, `o1`... `why` says in words what keeps it from being accumulated.
    """

    evaluate: Branch
    gathered: GatheredNode
    payload: pa.Schema
    settled: pa.Schema
    empty: Java | None = None
    announced: bool = False
    limit: Limit | None = None
    why: str = ""

    @property
    def traces(self) -> tuple[TraceName, ...]:
        return TraceName(f"{self.name}/rows"), self.trace

    @property
    def whole(self) -> bool:
        return self.empty is not None

    @property
    def account(self) -> Account:
        if self.limit is not None:
            why = f"behind the first {self.limit.k} others wait, to come up when one of them goes"
            return Account("the rows of each group in their order, and the first of them", why, "in proportion to the change and the limit")
        return Account("the rows of each group, and its last result", self.why, GROUPS)


@dataclass(eq=False, slots=True, kw_only=True)
class JoinNode(Operator):
    """Two collections joined on their keys. `payloads` are what the sides keep. A column `_tells`, if any, says what a row stands for."""

    spec: Joining
    payloads: tuple[pa.Schema, pa.Schema]

    @property
    def traces(self) -> tuple[TraceName, ...]:
        return TraceName(f"{self.name}/left"), TraceName(f"{self.name}/right")

    @property
    def account(self) -> Account:
        if not self.spec.left:
            why = "there is no equal key: every change meets all of the other side"
            return Account("both sides, as one group", why, "in proportion to the change times the other side")
        costs = "in proportion to the change and the rows that it meets"
        return Account("both sides by key", "rows of either side may come or go later", costs)


@dataclass(eq=False, slots=True, kw_only=True)
class MatchNode(Operator):
    """Rows of one side of a join, by whether they are part of any of the pairs that its input tells. `columns` are the side's."""

    spec: Matching
    columns: pa.Schema

    @property
    def account(self) -> Account:
        return Account("the number of matches by row", "a condition beyond equal keys decides which pairs match", CHANGE)
