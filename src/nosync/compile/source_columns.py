"""Whether an aggregate needs nothing of its source but columns as they are.

Then Spark has nothing to compute below it, and tasks may read the columns from the files themselves.
"""

import pyarrow as pa

from nosync.bridge.catalyst import Java, items, kind
from nosync.graph.nodes import SourceNode
from nosync.graph.operators import SourceColumns
from nosync.graph.templates import Branch, Hole, Template
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.xxhash64 import hashable


def source_columns(child: Template, spec: Accumulation, keys: list[Java], inputs: list[Java]) -> SourceColumns | None:
    """The source's columns that are the keys and inputs, or None where anything has to be computed first."""
    if not all(hashable(type) and not _normalised(type) for type in spec.keys):
        return None
    piece = child.piece
    expressions = [*keys, *inputs]
    while isinstance(piece, Branch):
        if kind(piece.plan) != "Project":
            return None
        below = [_below(piece.plan, expression) for expression in expressions]
        if any(expression is None for expression in below):
            return None
        expressions, piece = below, piece.children[0]
    return _named(piece, expressions, len(keys))


def _normalised(type: pa.DataType) -> bool:
    """Types of which Spark groups several bit patterns as one."""
    return bool(pa.types.is_floating(type) or pa.types.is_nested(type))


def _below(project: Java, expression: Java) -> Java | None:
    """What an attribute is made of below a Project, if that is again an attribute."""
    if kind(expression) != "AttributeReference":
        return None
    for column in items(project.projectList()):
        if column.exprId().equals(expression.exprId()):
            return column.child() if kind(column) == "Alias" else column
    return None


def _named(hole: Hole, attributes: list[Java], keys: int) -> SourceColumns | None:
    node = hole.node
    if not isinstance(node, SourceNode) or node.static is not None:
        return None
    names = []
    for attribute in attributes:
        if kind(attribute) != "AttributeReference":
            return None
        place = [i for i, known in enumerate(hole.attributes) if known.exprId().equals(attribute.exprId())]
        if not place:
            return None
        names.append(node.schema.names[place[0]])
    return SourceColumns(node.name, tuple(names[:keys]), tuple(names[keys:]))
