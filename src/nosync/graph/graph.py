"""The graph of a flow: all its nodes."""

from collections import Counter
from dataclasses import dataclass, field

from nosync.graph.nodes import SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.templates import holes


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

    def consumers(self) -> Counter[int]:
        """How many places use each node's change, by identity."""
        counts: Counter[int] = Counter()
        for operator in self.operators:
            counts.update(id(hole.node) for hole in holes(operator.feed.piece))
        reads = {id(view): [id(hole.node) for hole in holes(view.body.piece)] for view in self.queries}
        read = {*counts, *(node for nodes in reads.values() for node in nodes)}
        for view in self.queries:
            if view.feed is not None or id(view) in read:  # else its change is not computed: nobody asks for it
                counts.update(reads[id(view)])
        counts.update(id(view) for view in self.queries if view.feed is not None)
        return counts
