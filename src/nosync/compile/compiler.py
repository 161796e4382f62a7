"""From Spark's optimised plan to operators: `Compiler.view` adds one query to a graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.catalyst import Catalyst, Java, data_type, items, kind
from nosync.bridge.errors import JavaError, words_of
from nosync.bridge.frames import analyzed, empty, optimized, optimized_as_stream
from nosync.bridge.placeholders import register
from nosync.bridge.sessions import hashed_maps
from nosync.compile.derivation import derived
from nosync.compile.fingerprint import Plans, digest
from nosync.compile.query import Query, Rules
from nosync.compile.refusal import check_analyzed, check_optimised, check_rewritten, no_late_rows, not_final
from nosync.compile.rewrites.analysed import prepared
from nosync.compile.rewrites.table import rewritten
from nosync.compile.sharding import hashed_by
from nosync.graph.graph import Graph
from nosync.graph.nodes import Backing, Derived, SourceNode, ViewNode
from nosync.graph.operators import AccumulateNode, Operator
from nosync.graph.templates import Branch, Hole, Template
from nosync.model.columns import HASH, ROW
from nosync.model.errors import Refused

Check = Callable[[ViewNode], None]


def _any(node: ViewNode) -> None:
    """Anything will do."""


@dataclass(eq=False)
class Compiler:
    """Turns the queries of one flow into one graph, by the rules. `leaves` maps the id of a placeholder's RDD to what it stands for."""

    catalyst: Catalyst
    rules: Rules
    flow: str = ""
    graph: Graph = field(default_factory=Graph)
    leaves: dict[int, SourceNode | ViewNode | Operator] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)

    def placeholder(self, schema: StructType, node: SourceNode | ViewNode | Operator) -> DataFrame:
        """An empty DataFrame that stands for the node in the user's queries."""
        frame = empty(self.catalyst.spark, schema)
        self.leaves[register(frame, self.flow, self)] = node
        return frame

    def view(self, name: str, query: DataFrame, final: bool = False, late: str | None = None) -> ViewNode:
        """Compiles a query and adds it to the graph under a name; with `late`, the rows that come too late for it under that name."""
        compiled, node = self._compile(name, query, may_be_backed=True, final=final)
        if late is not None:
            self.graph.views[late] = self._late(name, late, compiled)
        self.graph.views[name] = node
        return node

    def _late(self, name: str, late: str, compiled: Query) -> ViewNode:
        if len(compiled.late) != 1:
            raise no_late_rows(name, len(compiled.late))
        body = compiled.late[0]
        schema = StructType([StructField(a.name(), data_type(a)) for a in body.output])
        aligned = _aligned(self.catalyst, body, schema)
        marks = tuple(f"{column.name}:{column.dataType.simpleString()}" for column in schema.fields)
        node = ViewNode(late, aligned, schema, rows=aligned.fingerprint, marks=marks)
        return self._keeping(node, tuple(sorted(range(len(marks)), key=lambda i: (marks[i], i))))

    def sink(self, name: str, query: DataFrame, check: Check = _any) -> ViewNode:
        """Compiles a query whose changes go to a sink: what each epoch adds and removes is kept until the sink has it. `check` may refuse
        what it has become.
        """
        _, self.graph.sinks[name] = compiled = self._compile(f"sink {name}", query, may_be_backed=False, check=check)
        return compiled[1]

    def _compile(
        self, name: str, query: DataFrame, may_be_backed: bool, final: bool = False, check: Check = _any
    ) -> tuple[Query, ViewNode]:
        self.catalyst.forget()
        compiled = Query(self.catalyst, name, self.graph, self.rules, self.leaves, final=final, functions=self.functions)
        with hashed_maps(self.catalyst.spark):
            plan = self._plan(name, query)
            check_rewritten(plan, name)
            body = _aligned(self.catalyst, compiled.template(plan), query.schema)
            marks = tuple(compiled.plans.gives(plan))
        if final and not compiled.finals:
            raise not_final(name)
        backing = _backing(body) if may_be_backed else None
        arrow_schema(query.schema, f'view "{name}"')
        node = ViewNode(name, body, query.schema, backing, rows=body.rows, marks=marks, derive=partial(self._derived, name, query))
        if not may_be_backed:  # a sink's target has the columns under their names and in their order
            marks = tuple(f"{field.name} {mark}" for field, mark in zip(query.schema.fields, marks, strict=True))
            self._keeping(node, tuple(range(len(marks))), digest(f"{body.rows} gives {marks}"))
        elif backing is None:
            self._keeping(node, tuple(compiled.plans.arranged(plan)))
        check(node)
        self.graph.operators += compiled.operators
        self.graph.statics += compiled.statics
        return compiled, node

    def _keeping(self, node: ViewNode, stored: tuple[int, ...], fingerprint: str = "") -> ViewNode:
        """The view as one that keeps rows of its own, with the columns in this order."""
        columns = StructType([StructField(f"c{i}", node.schema.fields[column].dataType) for i, column in enumerate(stored)])
        node.payload, node.stored = arrow_schema(columns, f'view "{node.name}"'), stored
        node.feed, node.hashed = _rows_feed(self.catalyst, node.body, stored), hashed_by(node.body, stored)
        node.fingerprint = fingerprint or digest(f"{node.rows} gives {sorted(node.marks)}")
        return node

    def _plan(self, name: str, query: DataFrame) -> Java:
        return rewritten(self.catalyst, self._optimised(name, query))

    def _derived(self, name: str, query: DataFrame, marks: Mapping[str, int]) -> Derived | None:
        """Plans take memory, so none is held until a changed program asks: then it is made again."""
        with hashed_maps(self.catalyst.spark):
            plans = Plans(self.catalyst, self.leaves, self.functions)
            return derived(self.catalyst, plans, self._plan(name, query), marks)

    def _optimised(self, name: str, query: DataFrame) -> Java:
        """What Spark's optimiser makes of the query; refused where the query, or what was made of it, depends on chance."""
        asked = self.catalyst.read(analyzed(query))
        check_analyzed(asked, name)
        ready = prepared(self.catalyst, asked, name)
        plan = self.catalyst.read(optimized(query) if ready is asked else self._optimised_anew(name, ready))
        check_optimised(plan, name)
        return plan

    def _optimised_anew(self, name: str, plan: Java) -> Java:
        try:
            return optimized_as_stream(self.catalyst.frame(plan))
        except (PySparkException, JavaError) as error:
            words = f'view "{name}" joins with the nearest rows where that cannot be rewritten: {words_of(error)}'
            raise Refused(words, hint="Make the join a view of its own.") from None


def _aligned(catalyst: Catalyst, body: Template, schema: StructType) -> Template:
    """The body with its columns in the order of the query's schema and nothing else."""
    names = [a.name() for a in body.output]
    if names == schema.names and isinstance(body.piece, Branch) and kind(body.piece.plan) == "Project":
        return body
    node = catalyst.project(body.output + body.carried, catalyst.nowhere)
    return Template(Branch(node, [body.piece]), body.output, body.carried, body.append_only, body.fingerprint, body.rows)


def _rows_feed(catalyst: Catalyst, body: Template, stored: Sequence[int]) -> Branch:
    """What a view keeps of its rows: the columns, under numbers since names may repeat or hold anything; where they lie, the hash of the
    row and the diff.
    """
    output = [body.output[column] for column in stored]
    row = catalyst.hash(output)
    columns = [(a, f"c{i}") for i, a in enumerate(output)]
    columns += [(body.carried[0] if body.sharded else row, HASH), (row, ROW)]
    return Branch(catalyst.feed(columns, body.carried[-1:]), [])


def _backing(body: Template) -> Backing | None:
    """Whether the body is no more than columns of an accumulate operator: then its state is the view."""
    piece = body.piece
    hole = piece.children[0] if isinstance(piece, Branch) else None
    if not (isinstance(piece, Branch) and isinstance(hole, Hole) and isinstance(hole.node, AccumulateNode)) or hole.node.expiries:
        return None
    identities = {str(attribute.exprId().toString()): i for i, attribute in enumerate(hole.attributes[:-2])}
    columns = []
    for column in items(piece.plan.projectList())[:-2]:
        inner = column.child() if kind(column) == "Alias" else column
        if kind(inner) != "AttributeReference" or str(inner.exprId().toString()) not in identities:
            return None
        columns.append(identities[str(inner.exprId().toString())])
    return Backing(hole.node, columns)
