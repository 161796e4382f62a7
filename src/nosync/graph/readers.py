"""Who reads whom, the other way round than nodes point: what an input can reach. Made once, so that an epoch need not look at all nodes."""

from collections.abc import Iterable

from nosync.graph.graph import Graph
from nosync.graph.nodes import Node
from nosync.graph.walk import inputs, upstream


class Readers:
    """Of each node, those that are computed from it."""

    def __init__(self, graph: Graph) -> None:
        self._readers: dict[int, list[Node]] = {}
        for node in upstream([*graph.queries, *graph.operators]):
            for read in inputs(node):
                self._readers.setdefault(id(read), []).append(node)

    def reached(self, nodes: Iterable[Node]) -> dict[int, Node]:
        """The nodes and all that is computed from them, by identity."""
        found: dict[int, Node] = {}
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if id(node) not in found:
                found[id(node)] = node
                pending += self._readers.get(id(node), [])
        return found
