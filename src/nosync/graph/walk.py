"""What can be said of a node by looking at what it stands on.

A walk visits every node once, however many ways lead to it: a view may be read by several others, and each of those again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import GatheredNode, Operator
from nosync.graph.templates import Branch, Piece, holes

Into = Callable[[Node], Iterable[Node]]


def inputs(node: Node) -> list[Node]:
    """The nodes whose changes this one is computed from."""
    match node:
        case SourceNode() | GatheredNode():
            return []
        case ViewNode():
            return read_by(node.body.piece)
    return read_by(node.feed.piece)


def read_by(piece: Piece) -> list[Node]:
    """The nodes whose changes go into a template, each once."""
    return list({id(hole.node): hole.node for hole in holes(piece)}.values())


def upstream(nodes: Iterable[Node], into: Into = inputs) -> Iterator[Node]:
    """The nodes and all that they are computed from, each once; `into` says where the walk goes on from a node."""
    seen: set[int] = set()
    pending = list(nodes)[::-1]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending += list(into(node))[::-1]


def behind_views(nodes: Iterable[Node]) -> Iterator[SourceNode | Operator | GatheredNode]:
    """Whose changes these are: views pass on those of what they read."""
    for node in upstream(nodes, lambda one: inputs(one) if isinstance(one, ViewNode) else []):
        if not isinstance(node, ViewNode):
            yield node


def reads_past(node: Node, held: Collection[str]) -> bool:
    """Whether some way from a source leads to the node past the operators that are `held`, by their names."""
    return any(isinstance(one, SourceNode) and one.static is None for one in upstream([node], up_to(held)))


def up_to(held: Collection[str]) -> Into:
    """A walk that goes no further than the operators of these names."""
    return lambda node: [] if isinstance(node, Operator) and node.name in held else inputs(node)


def reads_rejects(node: Node) -> bool:
    """Whether the node depends on rejected rows."""
    return any(isinstance(one, SourceNode) and one.name.endswith(".rejected") for one in upstream([node]))


def stateful(node: Node) -> bool:
    """Whether computing the node's change runs kernels: then it must not be computed twice."""
    return any(isinstance(one, Operator) for one in behind_views([node]))


def follows_from_input(node: Node) -> bool:
    """Whether the node's change follows from the input alone: no state, no event time of the epochs before."""
    return all(isinstance(one, SourceNode) or (isinstance(one, ViewNode) and is_plain(one.body.piece)) for one in upstream([node]))


def is_plain(piece: Piece) -> bool:
    """Whether nothing in a template goes by event time."""
    return not isinstance(piece, Branch) or (type(piece) is Branch and all(map(is_plain, piece.children)))


def longest_way(nodes: Iterable[Node], counts: Callable[[Node], bool]) -> int:
    """The most nodes that count on any one way from a source to one of these. A way that comes back to itself ends there."""
    lengths: dict[int, int] = {}

    def length(node: Node) -> int:
        if id(node) not in lengths:
            lengths[id(node)] = 0
            lengths[id(node)] = int(counts(node)) + max(map(length, inputs(node)), default=0)
        return lengths[id(node)]

    return max(map(length, nodes), default=0)
