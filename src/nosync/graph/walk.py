"""What can be said of a node by looking at what it stands on."""

from nosync.graph.nodes import Branch, GatheredNode, Node, Piece, SourceNode, ViewNode, holes


def inputs(node: Node) -> list[Node]:
    """The nodes whose changes this one is computed from."""
    match node:
        case SourceNode() | GatheredNode():
            return []
        case ViewNode():
            return [hole.node for hole in holes(node.body.piece)]
    return [hole.node for hole in holes(node.feed.piece)]


def late(node: Node) -> bool:
    """Whether the node depends on rejected rows."""
    if isinstance(node, SourceNode):
        return node.name.endswith(".rejected")
    return any(late(other) for other in inputs(node))


def stateful(node: Node) -> bool:
    """Whether computing the node's change runs kernels: then it must not be computed twice."""
    match node:
        case SourceNode() | GatheredNode():
            return False
        case ViewNode():
            return _reaches_state(node.body.piece)
    return True


def _reaches_state(piece: Piece) -> bool:
    if isinstance(piece, Branch):
        return any(_reaches_state(child) for child in piece.children)
    return stateful(piece.node)


def timeless(node: Node) -> bool:
    """Whether the node's change follows from the input alone: no state, no event time of the epochs before."""
    match node:
        case SourceNode():
            return True
        case ViewNode():
            return _follows_from_input(node.body.piece)
    return False


def _follows_from_input(piece: Piece) -> bool:
    if isinstance(piece, Branch):
        return type(piece) is Branch and all(_follows_from_input(child) for child in piece.children)
    return timeless(piece.node)
