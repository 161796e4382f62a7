"""Project: Spark's own node, with what is carried beside its columns."""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children, items
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def projected(query: "Query", plan: Java) -> Template:
    child = query.passed_on(children(plan)[0])
    node = query.catalyst.project(items(plan.projectList()) + child.carried, children(plan)[0])
    return Template(Branch(node, [child.piece]), items(plan.output()), child.carried, child.append_only)
