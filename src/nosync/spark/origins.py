"""Which rows of which sources a row of a view comes from: Spark's own optimiser says it.

The row's values become a filter above the view's query. What the optimiser pushes down to the leaves, through projections, aggregates by
those columns, and joins by equal keys, is true of every input row that could have had a part in the row; where nothing can be pushed, all
rows could. Views below are looked through in the same way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nosync.bridge.catalyst import AttributeIdentity, Catalyst, Java, children, items, kind
from nosync.bridge.columns import column_named
from nosync.bridge.frames import analyzed, optimized_as_stream
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.walk import upstream
from nosync.model.columns import DIFF

THROUGH = ("Filter", "Project")


@dataclass(frozen=True, slots=True)
class Origin:
    """A source, and what its rows must satisfy: `conditions` over these attributes. Without any, all rows are meant."""

    source: SourceNode
    attributes: list[Java]
    conditions: list[Java]

    def of(self, catalyst: Catalyst, rows: DataFrame) -> DataFrame:
        """Those of the rows of a slice that could have had a part."""
        below = analyzed(rows.select([*(column_named(attribute.name()) for attribute in self.attributes), F.col(DIFF)]))
        columns = items(below.output())
        targets = [*map(AttributeIdentity.of, self.attributes), AttributeIdentity(DIFF, catalyst.new_id(), columns[-1].qualifier())]
        plan = catalyst.renamed(columns, targets, below)
        for condition in self.conditions:
            plan = catalyst.logical.Filter(condition, plan)
        return catalyst.frame(plan)


def origins(catalyst: Catalyst, query: DataFrame, queries: Mapping[str, DataFrame], leaves: Mapping[int, Node]) -> Iterator[Origin]:
    """Those of a query's rows. `queries` of views by name; `leaves` say what placeholders stand for."""
    for leaf, conditions in _leaves(optimized_as_stream(query), []):
        node = leaves.get(int(leaf.rdd().id())) if kind(leaf) == "LogicalRDD" else None
        attributes = items(leaf.output())
        if isinstance(node, SourceNode):
            yield Origin(node, attributes, _about(conditions, attributes))
        elif isinstance(node, ViewNode) and node.name in queries:
            below = optimized_as_stream(queries[node.name])
            plan = catalyst.renamed(items(below.output()), [AttributeIdentity.of(attribute) for attribute in attributes], below)
            for condition in _about(conditions, attributes):
                plan = catalyst.logical.Filter(condition, plan)
            yield from origins(catalyst, catalyst.frame(plan), queries, leaves)
        elif node is not None:  # an operator of its own, such as the ledger of a source of changes
            known = (one for one in upstream([node]) if isinstance(one, SourceNode) and one.static is None)
            yield from (Origin(source, [], []) for source in known)


def _leaves(plan: Java, above: list[Java]) -> Iterator[tuple[Java, list[Java]]]:
    """Each leaf with the conditions of the filters between it and the next node of another kind."""
    below = children(plan)
    if not below:
        yield plan, above
    for child in below:
        passed = above if kind(plan) in THROUGH else []
        yield from _leaves(child, [*passed, plan.condition()] if kind(plan) == "Filter" else passed)


def _about(conditions: list[Java], attributes: list[Java]) -> list[Java]:
    """Those that speak of nothing but these attributes."""
    known = {str(attribute.exprId()) for attribute in attributes}
    return [one for one in conditions if all(str(found.exprId()) in known for found in items(one.references().toSeq()))]
