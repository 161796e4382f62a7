"""Union: Spark's own node. Of what is carried only the diff goes on: rows of several places lie nowhere in particular."""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children, items
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def united(query: "Query", plan: Java) -> Template:
    branches, diffs, append_only = [], [], True
    for original in children(plan):
        child = query.passed_on(original)
        node = query.catalyst.project([*child.output, child.carried[-1]], original)
        branches.append(Branch(node, [child.piece]))
        diffs.append(child.carried[-1])
        append_only = append_only and child.append_only
    return Template(Branch(plan, list(branches)), items(plan.output()), diffs[:1], append_only)
