"""Where and for whom the jobs of a run are: what one epoch's job needs and the next one's, too."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark import RDD, Accumulator
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from nosync.bridge.catalyst import Catalyst
from nosync.graph.graph import Graph
from nosync.graph.nodes import Node
from nosync.graph.operators import Operator, RegroupNode
from nosync.graph.traces import traces_of
from nosync.graph.walk import reads_rejects, upstream
from nosync.model.columns import SHARD
from nosync.model.identifiers import TraceName
from nosync.model.places import Sharing
from nosync.model.shards import shard_expression
from nosync.spark.receipts import Receipt, collector


@dataclass
class JobContext:
    """Where and for whom jobs run. `lately`: how many rows came to each trace in the epoch before; `narrow`: what narrow epochs keep;
    `sharing`: how tasks hand each other layers, where executors do not see the home.
    """

    session: SparkSession
    graph: Graph
    home: str
    flow: str
    run: str
    shards: int
    empties: dict[str, pa.RecordBatch | str]
    lately: Counter[str] | None = None
    narrow: Any = None
    sharing: Sharing | None = None
    _partitions: dict[int, "RDD[int]"] = field(default_factory=dict)

    def rescale(self, shards: int) -> None:
        """Between epochs: nothing that was put together for other shards may be used any more."""
        self.shards = shards
        self.__dict__.pop("shard", None)

    def partitions(self, count: int) -> "RDD[int]":
        """As many partitions as tasks that find their input themselves. Made once: making them costs as much as a small job."""
        if count not in self._partitions:
            self._partitions[count] = self.session.sparkContext.parallelize(range(count), count)
        return self._partitions[count]

    @cached_property
    def catalyst(self) -> Catalyst:
        return Catalyst(self.session)

    @cached_property
    def receipts(self) -> "Accumulator[list[Receipt]]":
        """One for all epochs: PySpark never forgets an accumulator."""
        return collector(self.session.sparkContext)

    @cached_property
    def shard(self) -> Column:
        return F.expr(shard_expression(self.shards))

    @cached_property
    def blob_shard(self) -> Column:
        return F.col(SHARD)

    @cached_property
    def kept_changes(self) -> frozenset[TraceName]:
        """The traces of kernels that what is kept for several readers is computed by."""
        several = {id(node) for node in self.graph.operators if isinstance(node, RegroupNode) and node.read_again}
        several |= {key for key, count in self.consumers.items() if count > 1}
        nodes: list[Node] = [*self.graph.operators, *self.graph.queries]
        kept = [node for node in nodes if id(node) in several]
        return frozenset(trace for node in upstream(kept) if isinstance(node, Operator) for trace in traces_of(node))

    @cached_property
    def of_rejects(self) -> frozenset[int]:
        """What depends on rejected rows, by identity."""
        every: list[Node] = [*self.graph.queries, *self.graph.operators]
        return frozenset(id(node) for node in every if reads_rejects(node))

    @cached_property
    def consumers(self) -> dict[int, int]:
        return self.graph.consumers()
