"""Whether a query can go to a sink: asked of sinks that are choosy, when they are declared."""

from nosync.bridge.arrow import arrow_schema
from nosync.graph.nodes import SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.traces import computed_from
from nosync.model.sink import Choosy, Sink


def check_fits(name: str, sink: Sink, node: ViewNode) -> None:
    """`Invalid` or `Refused` by the sink's own judgement."""
    if isinstance(sink, Choosy):
        sink.check_query(name, arrow_schema(node.schema, f'sink "{name}"'), corrects(node))


def corrects(node: ViewNode) -> list[str]:
    """What takes rows back that it gave, nearest to the output first; the source where its own rows come and go."""
    if node.append_only:
        return []
    behind = [other for other in computed_from(node) if isinstance(other, Operator | SourceNode) and not other.append_only]
    return [other.name for other in sorted(behind, key=lambda other: isinstance(other, SourceNode))] or [node.name]
