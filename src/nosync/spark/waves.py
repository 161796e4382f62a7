"""In which order a narrow epoch computes what it touches: in *waves*, each of nodes that need nothing of one another.

What Spark has to evaluate for a wave is asked for in one call, however many views lie side by side. Called by `narrow`.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.walk import inputs, upstream

Part = Literal["change", "rows"]  # what is computed of a node: its change, or what a view keeps of it
Wave = list[tuple[Node, Part]]


class Waves:
    """`leaf` views are computed for themselves, all others where they are read."""

    def __init__(self, leaf_views: Iterable[ViewNode]) -> None:
        self._leaves = {id(view) for view in leaf_views}
        self._depths: dict[int, int] = {}

    def of(self, ends: Iterable[Node], touched: Mapping[int, Node]) -> list[Wave]:
        """What is touched of the ends and below, from the sources up."""
        ends = list(ends)
        found: dict[int, Wave] = {}
        for node in upstream(ends, lambda one: [below for below in inputs(one) if id(below) in touched]):
            if isinstance(node, Operator) or id(node) in self._leaves:
                found.setdefault(self._depth(node), []).append((node, "change"))
        for end in ends:
            if isinstance(end, ViewNode):
                found.setdefault(self._depth(end) + 1, []).append((end, "rows"))
        return [found[depth] for depth in sorted(found)]

    def _depth(self, node: Node) -> int:
        """How many nodes that are computed for themselves lie on the longest way from a source."""
        if id(node) not in self._depths:
            self._depths[id(node)] = 0  # what depends on itself alone ends there
            below = max(map(self._depth, inputs(node)), default=0)
            passed_on = isinstance(node, SourceNode) or (isinstance(node, ViewNode) and id(node) not in self._leaves)
            self._depths[id(node)] = below + (not passed_on)
        return self._depths[id(node)]
