"""From Spark's optimised plan to operators: `Compiler.view` adds one query to a graph.

Stateless steps stay Spark's own plan nodes, with the diff riding along; each Aggregate becomes an operator with state.
Equal aggregates, in whichever view, become one operator.
"""

import hashlib
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from nosync.catalyst.aggregates import Parts, rebind, take_apart
from nosync.catalyst.arrow import arrow_schema, arrow_type
from nosync.catalyst.bridge import Catalyst, Java, children, data_type, items, kind
from nosync.catalyst.graph import (
    DIFF,
    GHOST,
    HASH,
    ROW,
    AccumulateNode,
    Backing,
    Branch,
    GatheredNode,
    Graph,
    Hole,
    RegroupNode,
    SourceNode,
    Template,
    ViewNode,
    holes,
)
from nosync.catalyst.plain import plain_columns
from nosync.catalyst.refusal import check_analyzed, check_key, refuse_node
from nosync.model.errors import Refused

NARROW = ("Filter", "Generate", "BatchEvalPython", "ArrowEvalPython")
WITHOUT_MEANING = ("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions")
STATIC = (
    "LocalRelation",
    "LogicalRDD",
    "LogicalRelation",
    "HiveTableRelation",
    "Range",
    "OneRowRelation",
    "InMemoryRelation",
    "DataSourceV2ScanRelation",
)


@dataclass(eq=False)
class Compiler:
    """Turns the queries of one flow into one graph. `leaves` maps the id of a placeholder's RDD to what it stands for."""

    catalyst: Catalyst
    graph: Graph = field(default_factory=Graph)
    leaves: dict[int, SourceNode | ViewNode] = field(default_factory=dict)

    def placeholder(self, schema: StructType, node: SourceNode | ViewNode) -> DataFrame:
        """An empty DataFrame that stands for the node in the user's queries."""
        frame = self.catalyst.spark.createDataFrame([], schema)
        self.leaves[frame._jdf.queryExecution().optimizedPlan().rdd().id()] = node
        return frame

    def view(self, name: str, query: DataFrame) -> ViewNode:
        """Compiles a query and adds it to the graph under a name."""
        execution = query._jdf.queryExecution()
        check_analyzed(execution.analyzed(), name)
        compiled = _Query(self, name)
        body = compiled.template(execution.optimizedPlan())
        body = compiled.aligned(body, query.schema)
        backing = _backing(body)
        node = ViewNode(name, body, query.schema, backing)
        payload = arrow_schema(_numbered(query.schema), f'view "{name}"')
        if backing is None:
            node.feed, node.payload = compiled.rows_feed(body), payload
        self.graph.operators += compiled.operators
        self.graph.statics += compiled.statics
        self.graph.views[name] = node
        return node


def _numbered(schema: StructType) -> StructType:
    """The same columns under numbers: names may repeat or hold anything."""
    return StructType([StructField(f"c{i}", column.dataType) for i, column in enumerate(schema.fields)])


@dataclass(eq=False)
class _Query:
    """One query on its way into the graph; its operators are added only when all of it could be compiled."""

    compiler: Compiler
    view: str
    operators: list[AccumulateNode | RegroupNode] = field(default_factory=list)
    statics: list[SourceNode] = field(default_factory=list)

    @property
    def catalyst(self) -> Catalyst:
        return self.compiler.catalyst

    def template(self, plan: Java) -> Template:
        """The plan with holes for sources and operators, each node passing the diff on."""
        result = self._template(plan)
        inputs = [hole.node.name for hole in _holes(result)]
        result.fingerprint = hashlib.sha256(f"{_text(plan)} over {inputs}".encode()).hexdigest()[:16]
        return result

    def _template(self, plan: Java) -> Template:
        name = kind(plan)
        for expression in items(plan.expressions()):
            self._refuse_subquery(expression)
        if name in WITHOUT_MEANING:
            return self._template(children(plan)[0])
        if name == "Project":
            return self._project(plan)
        if name in NARROW:
            child = self._template(children(plan)[0])
            output = items(plan.output())
            return Template(Branch(plan, [child.piece]), output, child.carried, child.append_only)
        if name == "Expand":
            return self._expand(plan)
        if name == "Union":
            return self._union(plan)
        if name == "Aggregate":
            return self._aggregate(plan)
        if name in STATIC:
            return self._leaf(plan)
        raise refuse_node(plan, self.view)

    def _refuse_subquery(self, expression: Java) -> None:
        if kind(expression) in ("ScalarSubquery", "Exists", "InSubquery", "ListQuery", "DynamicPruningSubquery"):
            raise Refused(
                f'view "{self.view}" uses a subquery in an expression, which cannot be maintained yet: {expression.sql()[:200]}',
                hint="Make the subquery a view of its own and combine the two when reading.",
            )
        for child in children(expression):
            self._refuse_subquery(child)

    def _leaf(self, plan: Java) -> Template:
        output = items(plan.output())
        node = self.compiler.leaves.get(plan.rdd().id()) if kind(plan) == "LogicalRDD" else None
        if node is None:
            schema = StructType([StructField(a.name(), data_type(a)) for a in output])
            node = SourceNode(f"{self.view}/static-{len(self.statics) + 1}", schema, append_only=True, static=plan)
            self.statics.append(node)
        carried = self._carried(node.placed)
        return Template(Hole(node, output + carried), output, carried, node.append_only)

    def _carried(self, placed: bool) -> list[Java]:
        long = self.catalyst.jvm.org.apache.spark.sql.types.DataTypes.LongType
        diff = self.catalyst.attribute(DIFF, long, nullable=False)
        return [self.catalyst.attribute(HASH, long, nullable=False), diff] if placed else [diff]

    def _project(self, plan: Java) -> Template:
        child = self._template(children(plan)[0])
        node = self.catalyst.project(items(plan.projectList()) + child.carried, children(plan)[0])
        return Template(Branch(node, [child.piece]), items(plan.output()), child.carried, child.append_only)

    def _expand(self, plan: Java) -> Template:
        child = self._template(children(plan)[0])
        rows = [self.catalyst.seq(items(row) + child.carried) for row in items(plan.projections())]
        output = items(plan.output())
        node = self.catalyst.logical.Expand(self.catalyst.seq(rows), self.catalyst.seq(output + child.carried), children(plan)[0])
        return Template(Branch(node, [child.piece]), output, child.carried, child.append_only)

    def _union(self, plan: Java) -> Template:
        branches, diffs, append_only = [], [], True
        for original in children(plan):
            child = self._template(original)
            node = self.catalyst.project([*child.output, child.carried[-1]], original)
            branches.append(Branch(node, [child.piece]))
            diffs.append(child.carried[-1])
            append_only = append_only and child.append_only
        return Template(Branch(plan, list(branches)), items(plan.output()), diffs[:1], append_only)

    def _aggregate(self, plan: Java) -> Template:
        child = self.template(children(plan)[0])
        known = next((op for op in self._all_operators() if op.plan.sameResult(plan) and _same_inputs(op.feed, child)), None)
        parts = take_apart(self.catalyst, plan, child.append_only)
        if parts is None:
            return self._regrouped(plan, child, known if isinstance(known, RegroupNode) else None)
        return self._accumulated(plan, child, parts, known if isinstance(known, AccumulateNode) else None)

    def _all_operators(self) -> list[AccumulateNode | RegroupNode]:
        return self.compiler.graph.operators + self.operators

    def _operator_name(self, what: str) -> str:
        number = len(self.operators) + 1
        return f"{self.view}/{what}" + (f"-{number}" if number > 1 else "")

    def _fingerprint(self, plan: Java, child: Template) -> str:
        return hashlib.sha256(f"{_text(plan, deep=False)} over {child.fingerprint}".encode()).hexdigest()[:16]

    def _accumulated(self, plan: Java, child: Template, parts: Parts, known: AccumulateNode | None) -> Template:
        keys = [self._key(expression) for expression in parts.grouping]
        node = known
        if node is None:
            types = [arrow_type(data_type(key), str(key.sql())) for key in keys]
            spec = parts.accumulation(types)
            columns = [("k", i, data_type(key)) for i, key in enumerate(keys)] + [
                ("r", i, data_type(call)) for i, call in enumerate(parts.found)
            ]
            schema = StructType([StructField(f"{letter}{i}", type) for letter, i, type in columns])
            feed = self._feed(child, keys, [("k", keys), ("i", parts.inputs)], rows=False)
            feed.fingerprint = self._fingerprint(plan, child)
            node = AccumulateNode(self._operator_name("aggregate"), feed, spec, schema, self.view, plan=plan)
            node.plain = plain_columns(child, spec, parts.grouping, parts.inputs)
            self.operators.append(node)
        key_columns = [self.catalyst.attribute(f"k{i}", key.dataType()) for i, key in enumerate(keys)]
        results = [self.catalyst.attribute(f"r{i}", call.dataType()) for i, call in enumerate(parts.found)]
        carried = self._carried(placed=True)
        hole = Hole(node, key_columns + results + carried)
        named = [
            self._named(e, rebind(self.catalyst, e, parts.grouping, key_columns, parts.found, results))
            for e in items(plan.aggregateExpressions())
        ]
        post = self.catalyst.project(named + carried, plan)
        return Template(Branch(post, [hole]), items(plan.output()), carried, append_only=False)

    def _named(self, original: Java, bound: Java) -> Java:
        """The rebound expression under the original's name and identity."""
        inner = bound.child() if kind(bound) == "Alias" else bound
        return self.catalyst.alias(inner, original.name(), like=original)

    def _key(self, expression: Java) -> Java:
        if kind(expression) == "AttributeReference" and expression.metadata().contains("spark.sessionWindow"):
            raise Refused(
                f'view "{self.view}" groups by session_window, which cannot be maintained yet',
                hint="Use window(...) with a fixed length, or group into sessions when reading the view.",
            )
        check_key(data_type(expression), str(expression.sql()), self.view)
        return self.catalyst.normalised(expression)

    def _feed(self, child: Template, keys: list[Java], columns: list[tuple[str, list[Java]]], rows: bool) -> Template:
        """What goes to the shards: the columns, the hash of the key, with `rows` the hash of the whole row, and the diff."""
        named = [self.catalyst.alias(e, f"{letter}{i}") for letter, group in columns for i, e in enumerate(group)]
        named.append(self.catalyst.alias(self.catalyst.hash(keys), HASH))
        if rows:
            named.append(self.catalyst.alias(self.catalyst.hash([e for _, group in columns for e in group]), ROW))
        named.append(child.carried[-1])
        return Template(Branch(self.catalyst.project(named, self.catalyst.nowhere), [child.piece]), [], [], child.append_only)

    def _regrouped(self, plan: Java, child: Template, known: RegroupNode | None) -> Template:
        node = known or self._regroup_node(plan, child)
        carried = self._carried(placed=True)
        output = items(plan.output())
        return Template(Hole(node, output + carried), output, carried, append_only=False)

    def _regroup_node(self, plan: Java, child: Template) -> RegroupNode:
        grouping, name = items(plan.groupingExpressions()), self._operator_name("regroup")
        keys = [self._key(expression) for expression in grouping]
        rows = StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(child.output)])
        feed = self._feed(child, keys, [("k", keys), ("c", child.output)], rows=True)
        feed.fingerprint = self._fingerprint(plan, child)
        key_types = [(f"k{i}", arrow_type(data_type(k), str(k.sql()))) for i, k in enumerate(keys)]
        payload = pa.schema(key_types + [(f.name, f.type) for f in arrow_schema(rows, f'view "{self.view}"')])
        gathered = GatheredNode(name, rows.add(GHOST, "boolean", False))
        output = items(plan.output())
        schema = StructType([StructField(f"c{i}", data_type(a)) for i, a in enumerate(output)])
        settled = pa.schema(key_types + [(f.name, f.type) for f in arrow_schema(schema, f'view "{self.view}"')])
        evaluate = self._evaluation(plan, child, gathered, grouping, output)
        empty = None if grouping else plan
        node = RegroupNode(name, feed, evaluate, gathered, payload, settled, len(keys), schema, empty, self.view, plan=plan)
        self.operators.append(node)
        return node

    def _evaluation(self, plan: Java, child: Template, gathered: GatheredNode, grouping: list[Java], output: list[Java]) -> Branch:
        """Spark's own Aggregate over the gathered rows. A ghost row stands for a group that has become empty."""
        ghost = self.catalyst.attribute(GHOST, self.catalyst.jvm.org.apache.spark.sql.types.DataTypes.BooleanType, nullable=False)
        keys = [self.catalyst.alias(key, f"k{i}") for i, key in enumerate(grouping)]
        expressions = [*items(plan.aggregateExpressions()), *keys, ghost]
        seq, below = self.catalyst.seq, children(plan)[0]
        whole = self.catalyst.logical.Aggregate(seq([*grouping, ghost]), seq(expressions), below, plan.hint())
        normal = [self.catalyst.normalised(key.toAttribute()) for key in keys]
        columns = [self.catalyst.alias(key, f"k{i}") for i, key in enumerate(normal)]
        columns += [self.catalyst.alias(a, f"c{i}") for i, a in enumerate(output)]
        columns += [self.catalyst.alias(self.catalyst.hash(normal), HASH), self.catalyst.alias(self.catalyst.hash(output), ROW), ghost]
        hole = Hole(gathered, [*child.output, ghost])
        return Branch(self.catalyst.project(columns, self.catalyst.nowhere), [Branch(whole, [hole])])

    def aligned(self, body: Template, schema: StructType) -> Template:
        """The body with its columns in the order of the query's schema and nothing else."""
        names = [a.name() for a in body.output]
        if names == schema.names and isinstance(body.piece, Branch) and kind(body.piece.plan) == "Project":
            return body
        node = self.catalyst.project(body.output + body.carried, self.catalyst.nowhere)
        return Template(Branch(node, [body.piece]), body.output, body.carried, body.append_only, body.fingerprint)

    def rows_feed(self, body: Template) -> Branch:
        """What a view keeps of its rows: the columns, where they lie, the hash of the row and the diff."""
        row = self.catalyst.hash(body.output)
        columns = [self.catalyst.alias(a, f"c{i}") for i, a in enumerate(body.output)]
        columns.append(self.catalyst.alias(body.carried[0] if body.placed else row, HASH))
        columns += [self.catalyst.alias(row, ROW), body.carried[-1]]
        return Branch(self.catalyst.project(columns, self.catalyst.nowhere), [])


def _holes(template: Template) -> list[Hole]:
    return list(holes(template.piece))


def _same_inputs(feed: Template, child: Template) -> bool:
    return [hole.node for hole in _holes(feed)] == [hole.node for hole in _holes(child)]


def _backing(body: Template) -> Backing | None:
    """Whether the body is no more than columns of an accumulate operator: then its state is the view."""
    piece = body.piece
    hole = piece.children[0] if isinstance(piece, Branch) else None
    if not (isinstance(piece, Branch) and isinstance(hole, Hole) and isinstance(hole.node, AccumulateNode)):
        return None
    identities = {attribute.exprId(): i for i, attribute in enumerate(hole.attributes[:-2])}
    columns = []
    for column in items(piece.plan.projectList())[:-2]:
        inner = column.child() if kind(column) == "Alias" else column
        if kind(inner) != "AttributeReference" or inner.exprId() not in identities:
            return None
        columns.append(identities[inner.exprId()])
    return Backing(hole.node, columns)


def _text(plan: Java, deep: bool = True) -> str:
    """A plan by what it says, free of the numbers that Spark gives out anew each time."""
    own = f"{kind(plan)}{[str(expression.sql()) for expression in items(plan.expressions())]}"
    return own + (f"({', '.join(_text(child) for child in children(plan))})" if deep else "")
