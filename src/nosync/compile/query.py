"""One query on its way into the graph: its plan, walked once.

Stateless steps stay Spark's own plan nodes, with the diff riding along; what keeps state is made by `grouping` and `joins`.
Operators are added to the graph only when all of the query could be compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql.types import StructField, StructType

from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind
from nosync.compile.fingerprint import columns, digest, origins, text
from nosync.compile.folding import folded, is_fold
from nosync.compile.group_maps import COGROUPED, GROUPED, group_mapped
from nosync.compile.grouping import aggregated
from nosync.compile.joins import joined
from nosync.compile.limits import limited
from nosync.compile.refusal import check_key, refuse_node, refuse_subquery
from nosync.compile.windows import windowed
from nosync.graph.nodes import DIFF, HASH, ROW, Branch, Graph, Hole, Operator, SourceNode, Template, ViewNode, holes

NARROW = ("Filter", "Generate", "BatchEvalPython", "ArrowEvalPython")
WITHOUT_MEANING = ("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions", "LocalLimit")
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
Some = TypeVar("Some", bound=Operator)


@dataclass(eq=False)
class Query:
    """`leaves` maps the id of a placeholder's RDD to what it stands for; `graph` holds what earlier queries have made.

    `final`: windows are told once, when they have closed; `finals` counts where that is done. `late` is what comes too late, by aggregate.
    """

    catalyst: Catalyst
    view: str
    graph: Graph
    leaves: dict[int, SourceNode | ViewNode | Operator]
    operators: list[Operator] = field(default_factory=list)
    statics: list[SourceNode] = field(default_factory=list)
    late: list[Template] = field(default_factory=list)
    final: bool = False
    finals: int = 0

    def template(self, plan: Java) -> Template:
        """The plan with holes for sources and operators, each node passing the diff on."""
        result = self._template(plan)
        result.fingerprint = digest(f"{text(plan)} as {columns(plan)} over {origins(result, plan)}")
        return result

    def _template(self, plan: Java) -> Template:
        name = kind(plan)
        if name in WITHOUT_MEANING:
            return self._template(children(plan)[0])
        for expression in items(plan.expressions()):
            refuse_subquery(expression, self.view)
        if name == "Project":
            return self._project(plan)
        found = windowed(self, plan) if name in ("Filter", "Window", "WindowGroupLimit") else None
        if found is not None:
            return found
        if name in NARROW:
            child = self._template(children(plan)[0])
            output = items(plan.output())
            return Template(Branch(plan, [child.piece]), output, child.carried, child.append_only)
        if name == "Expand":
            return self._expand(plan)
        if name == "Union":
            return self._union(plan)
        if name == "Aggregate":
            return aggregated(self, plan)
        if name == "Join":
            return joined(self, plan)
        if name in ("GlobalLimit", "Offset"):
            return limited(self, plan)
        if is_fold(plan):
            return folded(self, plan)
        if name in GROUPED + COGROUPED:
            return group_mapped(self, plan)
        if name in STATIC:
            return self._leaf(plan)
        raise refuse_node(plan, self.view)

    def _leaf(self, plan: Java) -> Template:
        output = items(plan.output())
        node = self.leaves.get(plan.rdd().id()) if kind(plan) == "LogicalRDD" else None
        if node is None:
            schema = StructType([StructField(a.name(), data_type(a)) for a in output])
            node = SourceNode(f"{self.view}/static-{len(self.statics) + 1}", schema, append_only=True, static=plan)
            self.statics.append(node)
        carried = self.carried(node.placed)
        return Template(Hole(node, output + carried), output, carried, node.append_only)

    def carried(self, placed: bool) -> list[Java]:
        long = self.catalyst.types.LongType
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

    def known(self, sort: type[Some], plan: Java, inputs: Sequence[Template]) -> Some | None:
        """An operator that computes the same over the same inputs, in whichever view it stands."""
        nodes = [hole.node for template in inputs for hole in holes(template.piece)]
        for operator in self.graph.operators + self.operators:
            if not isinstance(operator, sort) or [hole.node for hole in holes(operator.feed.piece)] != nodes:
                continue
            if operator.plan.sameResult(plan):
                return operator
        return None

    def key(self, expression: Java) -> Java:
        """A grouping key as Spark groups by it; refused where that cannot be told from its bytes."""
        check_key(data_type(expression), str(expression.sql()), self.view)
        return self.catalyst.normalised(expression)

    def operator_name(self, what: str) -> str:
        number = len(self.operators) + 1
        return f"{self.view}/{what}" + (f"-{number}" if number > 1 else "")

    def feed(self, child: Template, keys: list[Java], columns: list[tuple[str, list[Java]]], rows: bool) -> Template:
        """What goes to the shards: the columns, the hash of the key, with `rows` the hash of the whole row, and the diff."""
        named = [self.catalyst.alias(e, f"{letter}{i}") for letter, group in columns for i, e in enumerate(group)]
        named.append(self.catalyst.alias(self.catalyst.hash(keys), HASH))
        if rows:
            named.append(self.catalyst.alias(self.catalyst.hash([e for _, group in columns for e in group]), ROW))
        named.append(child.carried[-1])
        return Template(Branch(self.catalyst.project(named, self.catalyst.nowhere), [child.piece]), [], [], child.append_only)
