"""The step of accumulators: from rows, from blobs, or from files that tasks read themselves."""

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from nosync.bridge.arrow import arrow_schema
from nosync.graph.nodes import Node
from nosync.graph.operators import AccumulateNode
from nosync.spark import imports
from nosync.spark.schemas import BLOBS, NOTHING, change_schema
from nosync.spark.steps.accumulate_task import AccumulateTask
from nosync.spark.steps.direct_task import DirectTask

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob


def step(job: "EpochJob", node: AccumulateNode) -> DataFrame:
    task, direct = _task(job, node), direct_task(job, node)
    if node.name in job.imported:
        return imports.groups(job, job.imported[node.name], task, _declared(node, task))
    if direct is not None:
        return _directly(job, direct, _declared(node, task))
    return accumulated(job, node, task)


def accumulated(job: "EpochJob", node: AccumulateNode, task: AccumulateTask) -> DataFrame:
    """The change that a task makes of the operator's rows."""
    rows = job.rows(node.feed.piece)
    if task.unborn:
        rows = rows.unionAll(job.marker(rows))
    return reduced(job, node, task, rows, _declared(node, task))


def reduced(job: "EpochJob", node: AccumulateNode, task: AccumulateTask, rows: DataFrame, declared: StructType) -> DataFrame:
    """Many rows are aggregated where they are, and go to their shards as blobs."""
    if job.is_wide(node.feed.piece):
        blobs = rows.mapInArrow(task.combine_rows, BLOBS).repartitionById(job.context.shards, job.context.blob_shard)
        return blobs.mapInArrow(task.reduce_blobs, declared)
    return job.exchange(rows, node).mapInArrow(task.reduce_rows, declared)


def output_of(job: "EpochJob", node: AccumulateNode) -> pa.Schema | None:
    """What the task gives out; nothing where nobody reads it."""
    return arrow_schema(change_schema(node.schema), node.name) if job.consumers.get(id(node)) else None


def direct_task(job: "EpochJob", node: Node) -> DirectTask | None:
    """The operator's task if it can read its input itself."""
    columns = node.source_columns if isinstance(node, AccumulateNode) else None
    if not isinstance(node, AccumulateNode) or columns is None or columns.source not in job.direct or job.targets is not None:
        return None
    task = _task(job, node)
    return None if task.unborn else DirectTask(task, columns, job.direct[columns.source])


def _task(job: "EpochJob", node: AccumulateNode) -> AccumulateTask:
    return AccumulateTask(job.work(node.trace, "upserts"), node.spec, output_of(job, node))


def _declared(node: AccumulateNode, task: AccumulateTask) -> StructType:
    return NOTHING if task.output is None else change_schema(node.schema)


def _directly(job: "EpochJob", task: DirectTask, declared: StructType) -> DataFrame:
    if job.reads_by_shard:
        return job.numbers.mapInArrow(task.by_shard, declared)
    shares = job.context.session.range(0, len(task.paths), 1, len(task.paths))
    blobs = shares.mapInArrow(task.by_share, BLOBS).repartitionById(job.context.shards, job.context.blob_shard)
    return blobs.mapInArrow(task.accumulate.reduce_blobs, declared)
