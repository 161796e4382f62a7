"""By which of its columns the rows of a view lie in the log: by these they are found without reading the rest."""

from nosync.bridge.catalyst import Java, items, kind
from nosync.graph.nodes import ViewNode
from nosync.graph.operators import AccumulateNode
from nosync.graph.templates import Branch, Hole, Piece, Template


def hashed_by(body: Template, stored: tuple[int, ...]) -> tuple[int, ...]:
    """The columns, in the order in which they are hashed; none where that is not known. Rows that no operator has sharded lie by all, as
    they are stored.
    """
    if not body.sharded:
        return stored
    origins = [_origin(attribute, body.piece) for attribute in body.output]
    hole = _hole(body.piece)
    wanted = _hashed(hole) if hole is not None else ()
    found = {origin: column for column, origin in enumerate(origins) if origin is not None}
    return tuple(found[key] for key in wanted) if found.keys() >= set(wanted) else ()


def _hashed(hole: Hole) -> tuple[int, ...]:
    """Of what goes into a hole: which columns its rows are sharded by."""
    match hole.node:
        case AccumulateNode():
            return tuple(range(len(hole.node.spec.keys)))
        case ViewNode() if hole.node.backing is not None:
            keys, columns = range(len(hole.node.backing.node.spec.keys)), hole.node.backing.columns
            return tuple(columns.index(key) for key in keys) if set(columns) >= set(keys) else ()
        case ViewNode():
            return hole.node.hashed if hole.node.sharded else ()
    return ()


def _hole(piece: Piece) -> Hole | None:
    """The only hole of a piece without joins and unions."""
    while isinstance(piece, Branch):
        if len(piece.children) != 1:
            return None
        piece = piece.children[0]
    return piece


def _origin(attribute: Java, piece: Piece) -> int | None:
    """Which column of the hole an attribute is, unchanged."""
    identity = attribute.exprId()
    while isinstance(piece, Branch):
        if kind(piece.plan) == "Project":
            found = next((column for column in items(piece.plan.projectList()) if column.exprId() == identity), None)
            inner = found.child() if found is not None and kind(found) == "Alias" else found
            if inner is None or kind(inner) != "AttributeReference":
                return None
            identity = inner.exprId()
        if len(piece.children) != 1:
            return None
        piece = piece.children[0]
    return next((number for number, one in enumerate(piece.attributes) if one.exprId() == identity), None)
