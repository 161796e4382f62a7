"""What an aggregate answers over no rows. Spark is asked, once, when a run starts."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nosync.bridge.catalyst import Catalyst, Java, items
from nosync.bridge.errors import JavaError, words_of
from nosync.graph.operators import RegroupNode
from nosync.model.columns import COUNT, HASH, ROW


def empty_result(session: SparkSession, node: RegroupNode) -> pa.RecordBatch | str:
    """What an aggregate without a key answers over no rows, as its one row; in words where it fails over no rows."""
    catalyst = Catalyst(session)
    whole: Java = node.empty
    below = items(whole.children())[0]
    nothing = catalyst.logical.LocalRelation(below.output(), catalyst.seq([]), False, catalyst.jvm.scala.Option.empty())
    aggregate = catalyst.with_children(whole, [nothing])
    output = items(aggregate.output())
    columns = [catalyst.alias(a, f"c{i}") for i, a in enumerate(output)]
    columns.append(catalyst.alias(catalyst.hash(output), ROW))
    try:
        table = catalyst.frame(catalyst.project(columns, aggregate)).toArrow()
    except (PySparkException, JavaError) as error:
        return words_of(error)
    arrays = {HASH: pa.array([42], pa.uint64()), ROW: table.column(ROW).combine_chunks().view(pa.uint64())}
    arrays |= {f.name: table.column(f.name).combine_chunks().cast(f.type) for f in node.results}
    return pa.RecordBatch.from_pydict(arrays | {COUNT: pa.array([1], pa.int64())})
