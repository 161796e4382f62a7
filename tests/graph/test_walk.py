"""Walks of the graph: what they find, and that they visit each node once, whatever is stacked on it."""

from collections.abc import Callable

import pytest
from pyspark.sql.types import StructType

from nosync.graph import walk
from nosync.graph.graph import Graph
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Hole, Template
from nosync.graph.traces import computed_from, feeders, wanted_ends
from nosync.graph.walk import behind_views, follows_from_input, longest_way, reads_rejects, stateful, upstream

HEIGHT = 30
NO_COLUMNS = StructType([])


def over(*nodes: Node) -> Template:
    """A template that reads these nodes."""
    return Template(Branch(None, [Hole(node, []) for node in nodes]), [], [], append_only=True)


def source(name: str = "s") -> SourceNode:
    return SourceNode(name, NO_COLUMNS, append_only=True)


def view(name: str, *nodes: Node) -> ViewNode:
    return ViewNode(name, over(*nodes), NO_COLUMNS)


def self_joins(first: Node) -> list[Node]:
    """View upon view, each of which joins the one below with itself."""
    stack = [first]
    for level in range(HEIGHT):
        join = Operator(name=f"v{level}/join", feed=over(stack[-1], stack[-1]), schema=NO_COLUMNS)
        stack += [join, view(f"v{level}", join)]
    return stack


def self_unions(first: Node) -> list[Node]:
    """View upon view, without any state."""
    stack = [first]
    for level in range(HEIGHT):
        stack.append(view(f"v{level}", stack[-1], stack[-1]))
    return stack


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Every look at what a node is computed from."""
    seen: list[Node] = []

    def counted(piece: Branch | Hole, look: Callable[[Branch | Hole], list[Node]] = walk.read_by) -> list[Node]:
        nodes = look(piece)
        seen.extend(nodes)
        return nodes

    monkeypatch.setattr(walk, "read_by", counted)
    return seen


@pytest.mark.parametrize("stacked", [self_joins, self_unions])
@pytest.mark.parametrize(
    "question", [reads_rejects, stateful, follows_from_input, computed_from, lambda node: longest_way([node], lambda _: True)]
)
def test_a_question_about_stacked_self_joins_visits_each_node_once(
    visits: list[Node], question: Callable[[Node], object], stacked: Callable[[Node], list[Node]]
) -> None:
    stack = stacked(source())
    question(stack[-1])
    assert len(visits) <= len(stack)


def test_a_graph_of_stacked_self_joins_is_asked_in_proportion_to_its_pairs_of_nodes(visits: list[Node]) -> None:
    stack = self_joins(source())
    graph = Graph(operators=[node for node in stack if isinstance(node, Operator)])
    assert len(feeders(graph)) == HEIGHT
    assert wanted_ends(graph, {graph.operators[-1].trace: frozenset({0})}) == [graph.operators[-1]]
    assert len(visits) <= len(stack) ** 2


def test_a_graph_that_comes_back_to_itself_is_walked_to_an_end() -> None:
    first = view("first", source())
    second = view("second", first)
    first.body = over(source(), second)
    assert {node.name for node in upstream([second])} == {"first", "second", "s"}
    assert not reads_rejects(second) and not stateful(second) and follows_from_input(second)
    assert longest_way([second], lambda node: isinstance(node, ViewNode)) == 2


def test_what_depends_on_rejected_rows_is_late() -> None:
    rejected = source("s.rejected")
    assert reads_rejects(view("v", view("w", source(), rejected)))
    assert not reads_rejects(view("v", source()))


def test_views_pass_on_the_changes_of_what_they_read() -> None:
    s, other = source(), source("other")
    join = Operator(name="v/join", feed=over(s, other), schema=NO_COLUMNS)
    found = behind_views([view("w", view("v", join), s)])
    assert [node.name for node in found] == ["v/join", "s"]


def test_the_longest_way_counts_over_the_way_with_the_most() -> None:
    s = source()
    short, long = view("short", s), view("long", view("before", s))
    assert longest_way([view("v", short, long)], lambda node: isinstance(node, ViewNode)) == 3
