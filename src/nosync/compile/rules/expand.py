"""Expand: Spark's own node, each copy of a row with what is carried."""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children, items
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def expanded(query: "Query", plan: Java) -> Template:
    child, catalyst = query.passed_on(children(plan)[0]), query.catalyst
    rows = [catalyst.seq(items(row) + child.carried) for row in items(plan.projections())]
    output = items(plan.output())
    node = catalyst.logical.Expand(catalyst.seq(rows), catalyst.seq(output + child.carried), children(plan)[0])
    return Template(Branch(node, [child.piece]), output, child.carried, child.append_only)
