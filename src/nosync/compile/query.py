"""One query on its way into the graph: its plan, walked once.

Stateless steps stay Spark's own plan nodes, with the diff riding along; what keeps state becomes operators. Which is which say the rules,
by the kind of a plan's node. Operators are added to the graph only when all of the query could be compiled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from nosync.bridge.catalyst import Catalyst, Java, data_type, kind
from nosync.compile.fingerprint import Plans, digest
from nosync.compile.refusal import check_key, refuse_node
from nosync.graph.graph import Graph
from nosync.graph.nodes import SourceNode, ViewNode
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Template, holes
from nosync.model.columns import DIFF, HASH, ROW

Rule = Callable[["Query", Java], Template | None]
Rules = Mapping[str, Sequence[Rule]]  # by the kind of a plan's node: the first that does not answer None is right
Some = TypeVar("Some", bound=Operator)


@dataclass(eq=False)
class Query:
    """`leaves` maps the id of a placeholder's RDD to what it stands for; `graph` holds what earlier queries have made.

    `final`: windows are emitted once, when they have closed; `finals` counts where that is done. `late` are rows that come too late.
    `functions`: what Python functions say, by name (see `Plans`).
    """

    catalyst: Catalyst
    view: str
    graph: Graph
    rules: Rules
    leaves: dict[int, SourceNode | ViewNode | Operator]
    operators: list[Operator] = field(default_factory=list)
    statics: list[SourceNode] = field(default_factory=list)
    late: list[Template] = field(default_factory=list)
    final: bool = False
    finals: int = 0
    functions: dict[str, str] = field(default_factory=dict)
    plans: Plans = field(init=False)

    def __post_init__(self) -> None:
        self.plans = Plans(self.catalyst, self.leaves, self.functions)

    def template(self, plan: Java) -> Template:
        """The plan with holes for sources and operators, each node passing the diff on."""
        result = self.passed_on(plan)
        result.rows = digest(self.plans.rows(plan, result))
        result.fingerprint = digest(f"{result.rows} gives {self.plans.gives(plan)}")
        return result

    def arranged(self, plan: Java) -> Template:
        """The same with its columns in an order that follows from what they are: for those who keep them, wherever the query has them."""
        found, gives = self.template(plan), sorted(self.plans.gives(plan))
        output = [found.output[i] for i in self.plans.arranged(plan)]
        return replace(found, output=output, fingerprint=digest(f"{found.rows} gives {gives}"))

    def passed_on(self, plan: Java) -> Template:
        """The same for a step on the way to the next operator: nobody asks for its fingerprint."""
        for rule in self.rules.get(kind(plan), ()):
            found = rule(self, plan)
            if found is not None:
                return found
        raise refuse_node(plan, self.view)

    def carried(self, sharded: bool) -> list[Java]:
        long = self.catalyst.types.LongType
        diff = self.catalyst.attribute(DIFF, long, nullable=False)
        return [self.catalyst.attribute(HASH, long, nullable=False), diff] if sharded else [diff]

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
        """A grouping key as Spark groups by it; refused where its bytes do not show it."""
        check_key(data_type(expression), str(expression.sql()), self.view)
        return self.catalyst.normalised(expression)

    def operator_name(self, what: str) -> str:
        number = len(self.operators) + 1
        return f"{self.view}/{what}" + (f"-{number}" if number > 1 else "")

    def feed(self, child: Template, keys: list[Java], columns: list[tuple[str, list[Java]]], rows: bool) -> Template:
        """What goes to the shards: the columns, the hash of the key, with `rows` the hash of the whole row, and the diff."""
        named = [(e, f"{letter}{i}") for letter, group in columns for i, e in enumerate(group)]
        named.append((self.catalyst.hash(keys), HASH))
        if rows:
            named.append((self.catalyst.hash([e for _, group in columns for e in group]), ROW))
        return Template(Branch(self.catalyst.feed(named, child.carried[-1:]), [child.piece]), [], [], child.append_only)
