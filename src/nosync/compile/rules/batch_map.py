"""`mapInPandas` and `mapInArrow` with a function that is declared to work row by row (`ns.row_by_row`).

Such a function sees whatever batches Spark makes of the rows, and here only rows that changed. That is right if, and only if, what it makes
of a row follows from that row alone: then it may be given the rows that come and those that go apart from one another, and what it returns
comes or goes as often. Nothing shows this from outside, so it has to be said; any other function is refused.
"""

from typing import TYPE_CHECKING

from pyspark.sql.types import LongType, StructField, StructType

from nosync.bridge.catalyst import AttributeIdentity, Java, children, data_type, items, kind
from nosync.bridge.frames import analyzed
from nosync.bridge.functions import function_of
from nosync.compile.row_functions import DIFF_COLUMN, by_diff_in_arrow, by_diff_in_pandas, is_row_by_row
from nosync.graph.templates import Branch, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def batch_mapped(query: "Query", plan: Java) -> Template | None:
    """The rows that the function makes of the changed rows; None where it is not declared."""
    catalyst, function = query.catalyst, function_of(query.catalyst, plan.functionExpr())
    if not is_row_by_row(function) or plan.isBarrier():
        return None
    child = query.passed_on(children(plan)[0])
    pandas = kind(plan) == "MapInPandas"
    rows = catalyst.spark.createDataFrame([], _with_diff(child.output))
    called = (by_diff_in_pandas if pandas else by_diff_in_arrow)(function, [str(a.name()) for a in child.output])
    mapped = analyzed((rows.mapInPandas if pandas else rows.mapInArrow)(called, _with_diff(items(plan.output()))))
    given = [AttributeIdentity.of(a) for a in items(children(mapped)[0].output())]
    below = catalyst.renamed([*child.output, child.carried[-1]], given, catalyst.nowhere)
    output, carried = items(plan.output()), query.carried(sharded=False)
    above = catalyst.renamed(items(mapped.output()), [AttributeIdentity.of(a) for a in [*output, *carried]], catalyst.nowhere)
    piece = Branch(above, [Branch(mapped, [Branch(below, [child.piece])])])
    return Template(piece, output, carried, child.append_only)


def _with_diff(attributes: list[Java]) -> StructType:
    named = [StructField(str(a.name()), data_type(a)) for a in attributes]
    return StructType([*named, StructField(DIFF_COLUMN, LongType(), nullable=False)])
