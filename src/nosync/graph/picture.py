"""The graph of a flow as boxes for people: what each node does, keeps and costs, as far as the plan says it."""

from collections.abc import Iterator

from nosync.bridge.catalyst import Java, items, kind
from nosync.graph.graph import Graph
from nosync.graph.lateness import OnTime, TooLate
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Piece
from nosync.graph.timed import kept
from nosync.graph.walk import inputs
from nosync.model.columns import PART
from nosync.model.picture import CHANGE, Box

LONGEST = 160
READABLE = "to be read as of any epoch"
STEPS = {"Generate": "explode", "Union": "union", "Expand": "grouping sets"}


def boxes_of(graph: Graph) -> list[Box]:
    """All nodes, inputs first."""
    placed: dict[int, Box] = {}
    every: list[Node] = [*graph.queries, *graph.operators, *graph.sources.values()]
    for node in every:
        _place(node, graph, placed)
    return list(placed.values())


def _place(node: Node, graph: Graph, placed: dict[int, Box]) -> str:
    """Adds the node behind all that it is computed from; gives its id."""
    if id(node) not in placed:
        before = tuple(dict.fromkeys(_place(other, graph, placed) for other in inputs(node)))
        placed[id(node)] = _box(node, graph, before)
    return placed[id(node)].id


def _box(node: Node, graph: Graph, before: tuple[str, ...]) -> Box:
    match node:
        case SourceNode():
            sort = "static table" if node.static else "rejected rows" if node.name.endswith(".rejected") else "source"
            rows = "read once, with the first epoch" if node.static else "rows are only added" if node.append_only else "rows come and go"
            return Box(node.name, "source", sort, what=rows)
        case ViewNode():
            return _view_box(node, graph, before)
        case Operator():
            description = node.description
            return Box(
                node.name, "operator", node.kind, what=spoken(node.plan), keeps=description.keeps, why=description.why,
                costs=description.costs, steps=_steps(node.feed.piece), inputs=before, traces=node.traces, kept=kept(node),
            )  # fmt: skip
    raise AssertionError(node)


def _view_box(node: ViewNode, graph: Graph, before: tuple[str, ...]) -> Box:
    sink = next((name for name, other in graph.sinks.items() if other is node), None)
    columns = ", ".join(node.schema.names)
    steps = _steps(node.body.piece)
    if node.feed is None:
        assert node.backing is not None
        keeps = f"nothing: rows are finished from {node.backing.node.name} while reading"
        return Box(node.name, "view", "view", what=columns, keeps=keeps, steps=steps, inputs=before)
    if sink is not None:
        keeps, why = "what each epoch adds and removes", "until the sink has it, and for history"
        return Box(sink, "sink", "sink", columns, keeps, why, CHANGE, steps=steps, inputs=before, traces=(node.trace,))
    return Box(node.name, "view", "view", columns, "its rows", READABLE, CHANGE, steps=steps, inputs=before, traces=(node.trace,))


def spoken(plan: Java) -> str:
    """A node of Spark's plan in one line, cut where it is long."""
    if plan is None:
        return ""
    words = ", ".join(str(expression.sql()) for expression in items(plan.expressions()))
    if kind(plan) == "Aggregate":
        words = ", ".join(str(expression.sql()) for expression in items(plan.aggregateExpressions()))
        keys = ", ".join(str(expression.sql()) for expression in items(plan.groupingExpressions()))
        words = f"{words} by {keys}" if keys else words
    name = f"{kind(plan.joinType()).rstrip('$')} join" if kind(plan) == "Join" else kind(plan)
    return cut(f"{name} {words}".strip())


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _steps(piece: Piece) -> tuple[str, ...]:
    """What happens on the way. That both sides of a join go one way, as a union, is no step of the query."""
    sides = piece.children if isinstance(piece, Branch) and kind(piece.plan) == "Union" else [piece]
    return tuple(dict.fromkeys(step for side in sides for step in _parts(side)))


def _parts(piece: Piece) -> Iterator[str]:
    if not isinstance(piece, Branch):
        return
    for child in piece.children:
        yield from _parts(child)
    name = kind(piece.plan)
    if isinstance(piece, OnTime):
        yield "where the watermark has not passed"
    elif isinstance(piece, TooLate):
        yield "where the watermark has passed"
    elif name == "Filter" and PART not in str(piece.plan.condition().sql()):
        yield cut(f"where {piece.plan.condition().sql()}")
    elif name.endswith("EvalPython"):
        yield "Python functions"
    elif name in STEPS:
        yield STEPS[name]
