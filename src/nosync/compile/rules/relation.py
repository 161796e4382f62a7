"""Leaves of Spark's plan: placeholders of sources and views, and static tables, whose rows all come with the first epoch."""

from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from nosync.bridge.catalyst import Java, data_type, items, kind
from nosync.compile.refusal import check_own
from nosync.compile.static_tables import version_of
from nosync.graph.nodes import SourceNode
from nosync.graph.templates import Hole, Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def read(query: "Query", plan: Java) -> Template:
    output = items(plan.output())
    node = query.leaves.get(plan.rdd().id()) if kind(plan) == "LogicalRDD" else None
    if node is None:
        check_own(query.catalyst.spark, plan, query.view)
        schema = StructType([StructField(a.name(), data_type(a)) for a in output])
        node = SourceNode(f"{query.view}/static-{len(query.statics) + 1}", schema, append_only=True, static=plan)
        node.version = version_of(query.catalyst, plan)
        query.statics.append(node)
    carried = query.carried(node.sharded)
    return Template(Hole(node, output + carried), output, carried, node.append_only)
