"""Filter, Generate and the evaluation of Python functions: Spark's own nodes, which pass on by themselves whatever is carried."""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children, items
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def row_by_row(query: "Query", plan: Java) -> Template:
    child = query.passed_on(children(plan)[0])
    return Template(Branch(plan, [child.piece]), items(plan.output()), child.carried, child.append_only)
