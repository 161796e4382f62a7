"""A part of a graph: what it was before something new was declared. Pure."""

from collections.abc import Container

from nosync.graph.graph import Graph
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.traces import traces_of
from nosync.graph.walk import upstream
from nosync.model.identifiers import TraceName


def without(graph: Graph, traces: Container[TraceName]) -> Graph | None:
    """The graph without the nodes that keep these traces, over the same other nodes; None where some of those are computed from them."""
    operators = [node for node in graph.operators if not _keeps(node, traces)]
    views = {name: node for name, node in graph.views.items() if node.trace not in traces}
    sinks = {name: node for name, node in graph.sinks.items() if node.trace not in traces}
    reached = list(upstream([*operators, *views.values(), *sinks.values()]))
    if any(_keeps(node, traces) for node in reached):
        return None
    known = {id(node) for node in reached}
    return Graph(graph.sources, [table for table in graph.statics if id(table) in known], operators, views, sinks)


def _keeps(node: Node, traces: Container[TraceName]) -> bool:
    match node:
        case Operator():
            return any(trace in traces for trace in traces_of(node))
        case ViewNode():
            return node.trace in traces
        case SourceNode():
            return False
    return False
