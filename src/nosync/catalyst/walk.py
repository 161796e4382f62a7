"""What can be said of a node by looking at what it stands on."""

from nosync.catalyst.graph import AccumulateNode, Branch, GatheredNode, Node, Operator, Piece, RegroupNode, SourceNode, ViewNode, holes


def inputs(node: Node) -> list[Node]:
    """The nodes whose changes this one is computed from."""
    match node:
        case SourceNode() | GatheredNode():
            return []
        case ViewNode():
            return [hole.node for hole in holes(node.body.piece)]
    return [hole.node for hole in holes(node.feed.piece)]


def whole(node: Operator) -> bool:
    """Whether the node has a row even over no input."""
    match node:
        case AccumulateNode():
            return node.spec.whole
        case RegroupNode():
            return node.empty is not None
    return False


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
