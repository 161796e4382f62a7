"""The operators that most queries come down to."""

from dataclasses import dataclass

import pyarrow as pa

from nosync.catalyst.bridge import Java
from nosync.catalyst.graph import Branch, GatheredNode, Operator
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.join import Joining
from nosync.kernels.matching import Matching


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


@dataclass(eq=False, slots=True, kw_only=True)
class RegroupNode(Operator):
    """What Spark recomputes for the touched groups. `empty` gives its row over no input where it has no key."""

    evaluate: Branch
    gathered: GatheredNode
    payload: pa.Schema
    settled: pa.Schema
    keys: int
    empty: Java | None = None

    @property
    def traces(self) -> tuple[str, ...]:
        return (f"{self.name}/rows", self.name)

    @property
    def whole(self) -> bool:
        return self.empty is not None


@dataclass(eq=False, slots=True, kw_only=True)
class JoinNode(Operator):
    """Two collections joined on their keys. `payloads` are what the sides keep. A column `_tells`, if any, says what a row stands for."""

    spec: Joining
    payloads: tuple[pa.Schema, pa.Schema]

    @property
    def traces(self) -> tuple[str, ...]:
        return (f"{self.name}/left", f"{self.name}/right")


@dataclass(eq=False, slots=True, kw_only=True)
class MatchNode(Operator):
    """Rows of one side of a join, by whether they are part of any of the pairs that its input tells. `columns` are the side's."""

    spec: Matching
    columns: pa.Schema
