"""Which traces the nodes of a graph keep, and which of them a node needs. Pure: for jobs and for the plan of a recovery."""

from collections.abc import Iterable, Mapping

from nosync.catalyst.graph import Graph, Node, Operator, ViewNode
from nosync.catalyst.walk import inputs


def traces_of(node: Node) -> tuple[str, ...]:
    """The names under which the node itself keeps state."""
    match node:
        case Operator():
            return node.traces
        case ViewNode():
            return (node.operator,) if node.feed is not None else ()
    return ()


def above(node: Node) -> list[Node]:
    """The node and all that it is computed from."""
    found: dict[int, Node] = {}
    pending = [node]
    while pending:
        one = pending.pop()
        if id(one) not in found:
            found[id(one)] = one
            pending += inputs(one)
    return list(found.values())


def stateful_nodes(graph: Graph) -> list[Node]:
    return [*graph.operators, *(view for view in graph.queries if view.feed is not None)]


def feeders(graph: Graph) -> dict[str, frozenset[str]]:
    """For each trace, all traces that must be readable to compute it, itself included."""
    needs: dict[str, frozenset[str]] = {}
    for node in stateful_nodes(graph):
        together = frozenset(trace for one in above(node) for trace in traces_of(one))
        needs |= dict.fromkeys(traces_of(node), together)
    return needs


def stepwise(graph: Graph) -> list[str]:
    """Traces that come out right only epoch by epoch."""
    return [trace for operator in graph.operators if operator.stepwise for trace in operator.traces]


def wanted_ends(graph: Graph, targets: Mapping[str, Iterable[int]]) -> list[Node]:
    """The nodes to compute for some traces: those that no other of them is computed from."""
    wanted = [node for node in stateful_nodes(graph) if any(trace in targets for trace in traces_of(node))]
    read = {id(one) for node in wanted for one in above(node) if one is not node}
    return [node for node in wanted if id(node) not in read]
