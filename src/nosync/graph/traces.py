"""Which traces the nodes of a graph keep, and which of them a node needs. Pure: for jobs and for the plan of a recovery."""


from nosync.graph.graph import Graph
from nosync.graph.nodes import Node, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.walk import inputs, upstream
from nosync.model.engine import Targets
from nosync.model.identifiers import TraceName


def traces_of(node: Node) -> tuple[TraceName, ...]:
    """The names under which the node itself keeps state."""
    match node:
        case Operator():
            return node.traces
        case ViewNode():
            return (node.trace,) if node.feed is not None else ()
    return ()


def needed_of(node: Node) -> tuple[TraceName, ...]:
    """The traces that whoever reads the node must be able to read, too."""
    return (node.record,) if isinstance(node, Operator) and node.record is not None else traces_of(node)


def keeps_its_output(node: Node) -> bool:
    """Whether what the node has put out is in a trace, because nobody could compute it again."""
    return isinstance(node, Operator) and node.record is not None


def computed_from(node: Node) -> list[Node]:
    """The node and all that it is computed from, up to what is recorded."""
    return list(upstream([node], lambda one: inputs(one) if one is node or not keeps_its_output(one) else []))


def stateful_nodes(graph: Graph) -> list[Node]:
    return [*graph.operators, *(view for view in graph.queries if view.feed is not None)]


def feeders(graph: Graph) -> dict[TraceName, frozenset[TraceName]]:
    """For each trace, all traces that must be readable to compute it, itself included."""
    needs: dict[TraceName, frozenset[TraceName]] = {}
    for node in stateful_nodes(graph):
        together = frozenset(trace for one in computed_from(node) for trace in (traces_of(one) if one is node else needed_of(one)))
        needs |= dict.fromkeys(traces_of(node), together)
    return needs


def stepwise(graph: Graph) -> list[TraceName]:
    """Traces that come out right only epoch by epoch."""
    return [trace for operator in graph.operators if operator.stepwise for trace in operator.traces]


def unrepeatable(graph: Graph) -> list[TraceName]:
    """Traces that would come out differently if they were computed again, records among them."""
    return [trace for operator in graph.operators if operator.record is not None for trace in operator.traces]


def records(graph: Graph) -> list[TraceName]:
    return [operator.record for operator in graph.operators if operator.record is not None]


def wanted_ends(graph: Graph, targets: Targets) -> list[Node]:
    """The nodes to compute for some traces: those that no other of them is computed from, and views, whose rows are kept beside the way."""
    wanted = [node for node in stateful_nodes(graph) if any(trace in targets for trace in traces_of(node))]
    read = {id(one) for node in wanted for one in computed_from(node) if one is not node}
    return [node for node in wanted if isinstance(node, ViewNode) or id(node) not in read]
