"""What narrow epochs keep from one to the next, and the rows that one of them holds. Used by `narrow` alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Catalyst
from nosync.bridge.kept_plans import Channel, KeptPlan, Leaf, TooMany
from nosync.graph.graph import Graph
from nosync.graph.nodes import Node
from nosync.graph.readers import Readers
from nosync.spark.failure import InTask
from nosync.spark.job_context import JobContext
from nosync.spark.session import narrow_session
from nosync.spark.waves import Waves

HELD_ROWS = 1 << 20  # of one change


class NarrowState:
    """What narrow epochs of a run keep from one to the next: leaves, plans, and who reads whom."""

    def __init__(self, context: JobContext) -> None:
        self.session = narrow_session(context.session)
        self.channel = Channel(self.session)
        self.catalyst: Catalyst = self.channel.catalyst
        self.leaves: dict[int, Leaf] = {}
        self.shapes: dict[str, tuple[Leaf, KeptPlan]] = {}
        self.plans: dict[int | tuple[int, str], KeptPlan] = {}
        self.reach = Reach(context.graph, context.consumers, context.of_rejects)
        self.leaf_views = {id(view): view for view in context.graph.views.values() if context.consumers.get(id(view), 0) > 2}
        self.waves = Waves(self.leaf_views.values())


class Reach:
    """Which ends an input leads to, but for those `left_out`. `itself`: what may change without input."""

    def __init__(self, graph: Graph, consumers: Mapping[int, int], left_out: frozenset[int]) -> None:
        self.readers = Readers(graph)
        ends = [view for view in graph.queries if view.feed is not None]
        alone = [operator for operator in graph.operators if not consumers.get(id(operator))]
        every: list[Node] = [*ends, *alone]
        self.ends = {id(node): node for node in every if id(node) not in left_out}
        self.itself = [node for node in graph.operators if (node.time_driven or node.row_over_nothing) and id(node) not in left_out]


@dataclass
class HeldRows:
    """Rows in this process, with the methods of a DataFrame that steps use."""

    schema: StructType
    batches: list[pa.RecordBatch]

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    def mapInArrow(self, func: Callable[..., Any], schema: StructType) -> "HeldRows":  # noqa: N802 (PySpark's name)
        try:
            found = HeldRows(schema, [batch for batch in func(iter(self.batches)) if batch.num_rows])
        except Exception as error:
            raise InTask(error) from error
        if len(found) > HELD_ROWS:
            raise TooMany
        return found

    def unionAll(self, other: "HeldRows") -> "HeldRows":  # noqa: N802 (PySpark's name)
        return HeldRows(self.schema, self.batches + other.batches)
