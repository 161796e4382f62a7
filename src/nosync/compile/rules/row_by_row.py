"""Filter, Generate and the evaluation of Python functions: Spark's own nodes, which pass on by themselves whatever is carried.

A row that is removed must come out as it did when it was added: functions are held to that by `repeatable`.
"""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children, items, kind
from nosync.bridge.functions import with_functions_wrapped
from nosync.compile.repeatable import Repeatable
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def row_by_row(query: "Query", plan: Java) -> Template:
    child = query.passed_on(children(plan)[0])
    node = _whole_rows(query, plan) if kind(plan) == "Generate" else plan
    if kind(plan).endswith("EvalPython"):
        node = with_functions_wrapped(query.catalyst, plan, Repeatable)
    return Template(Branch(node, [child.piece]), items(plan.output()), child.carried, child.append_only)


def _whole_rows(query: "Query", plan: Java) -> Java:
    """The plan says by their places which columns are not wanted any more, and what is put below may have its columns in other places."""
    logical, nothing = query.catalyst.logical, query.catalyst.seq([])
    return logical.Generate(plan.generator(), nothing, plan.outer(), plan.qualifier(), plan.generatorOutput(), plan.child())
