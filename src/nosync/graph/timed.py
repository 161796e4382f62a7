"""What in a graph goes by event time. Pure: for jobs, for merging and for the plan of a recovery."""

from collections.abc import Iterator

from nosync.graph.graph import Graph
from nosync.graph.lateness import clocks
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch
from nosync.graph.traces import stateful_nodes, traces_of
from nosync.graph.walk import upstream
from nosync.model.identifiers import TraceName
from nosync.model.watermark import EventClock, Expiry


def _clocks(node: Node) -> Iterator[EventClock]:
    match node:
        case ViewNode():
            piece = node.body.piece
        case Operator():
            piece = node.feed.piece
        case _:
            return
    if isinstance(piece, Branch):
        yield from clocks([piece])
    if isinstance(node, Operator) and node.clock:
        yield node.clock


def timed_sources(graph: Graph) -> frozenset[str]:
    """Sources whose event time matters to somebody."""
    return frozenset(name for node in stateful_nodes(graph) for clock in _clocks(node) for name, _ in clock.delays)


def timed_traces(graph: Graph) -> frozenset[TraceName]:
    """State that depends on the watermark of each epoch, or on its number."""
    return frozenset(trace for node in stateful_nodes(graph) if any(_clocks(node)) for trace in traces_of(node))


def expiries(graph: Graph) -> dict[TraceName, Expiry]:
    """By trace, which of its rows are of no use any more."""
    known = [operator for operator in graph.operators if operator.expiries]
    each = (pair for operator in known for pair in zip(operator.traces, operator.expiries, strict=True))
    return {trace: expiry for trace, expiry in each if expiry is not None}


def kept(node: Operator) -> str:
    """How long an operator keeps its rows, for people: `until ...`, or `for ever, because ...`."""
    description = node.description
    if description.kept:
        return description.kept
    endless = f"for ever, because {description.endless if has_event_time(node) else 'no source of it has a watermark'}"
    found = [endless if expiry is None else expiry.words for expiry in node.expiries] or [endless]
    if len(set(found)) == 1:
        return found[0]
    names = [trace.rpartition("/")[2] for trace in node.traces]
    return "; ".join(f"{name} {words}" for name, words in zip(names, found, strict=True))


def has_event_time(node: Node) -> bool:
    """Whether any source that the node is computed from has a watermark."""
    return any(isinstance(one, SourceNode) and one.delay is not None for one in upstream([node]))


def closings(graph: Graph) -> int:
    """How many epochs may have to follow one that moved event time on, until all that it closed is emitted."""
    return max((clock.lag + 1 for node in graph.operators if node.time_driven for clock in _clocks(node)), default=0)
