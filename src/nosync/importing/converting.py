"""Rows of Spark's state on their way into files of a home, in the form of `spark.imports`."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from nosync.graph.operators import AccumulateNode, RegroupNode
from nosync.importing.accumulators import Buffers, groups_of
from nosync.importing.checkpoint import Checkpoint
from nosync.importing.matching import Carried
from nosync.importing.stored_state import rows_of
from nosync.kernels.accumulate import Accumulation
from nosync.model.columns import DIFF, HASH, ROW
from nosync.spark.task import Batches, unsigned

EMPTY_KEY = 42  # the hash of no columns
BLOB = StructType([StructField("blob", BinaryType())])


def blobs_of(spark: SparkSession, checkpoint: Checkpoint, carried: Carried) -> DataFrame:
    """One column, a value for some thousand rows of state."""
    node, rows = carried.layout.node, rows_of(spark, checkpoint, carried.stored.number)
    keys, values = _numbered(carried.stored.keys), _numbered(carried.stored.values)
    rows = rows.select(F.col("key").cast(keys).alias("key"), F.col("value").cast(values).alias("value"))
    if isinstance(node, AccumulateNode):
        return _of_groups(rows, carried, node)
    return _fed(rows, carried, node).mapInArrow(_streams, BLOB)


def _of_groups(rows: DataFrame, carried: Carried, node: AccumulateNode) -> DataFrame:
    order = carried.layout.order(carried.stored) or []
    hash = F.xxhash64(*map(_key, order)) if order else F.lit(EMPTY_KEY).cast("bigint")
    first = len(carried.stored.values) - len(carried.layout.values)
    task = GroupsTask(node.spec, carried.layout.buffers, tuple(order), first)
    return rows.select("key", "value", hash.alias(HASH)).mapInArrow(task, BLOB)


def _fed(rows: DataFrame, carried: Carried, node: RegroupNode) -> DataFrame:
    """A row for each key, with null in all other columns, as the operator is fed with it. It comes before all others of its key: what was
    met is met, whatever follows.
    """
    layout, order = carried.layout, carried.layout.order(carried.stored) or []
    names = dict(zip((name for name, _ in layout.keys), order, strict=True))
    keys = [_key(i).alias(f"k{place}") for place, i in enumerate(order)]
    columns = [
        (_key(names[name]) if name in names else F.lit(None).cast(field.dataType)).alias(field.name)
        for name, field in zip(layout.columns, node.gathered.schema.fields, strict=False)
    ]
    found = rows.select(*keys, *columns)
    hash, first, once = F.xxhash64(*(f"k{i}" for i in range(len(keys)))), F.lit(0), F.lit(1)
    return found.select("*", hash.alias(HASH), first.cast("bigint").alias(ROW), once.cast("bigint").alias(DIFF))


def _numbered(columns: StructType) -> StructType:
    """The same columns under numbers: several buffers have one name."""
    return StructType([StructField(f"c{i}", field.dataType) for i, field in enumerate(columns.fields)])


def _key(number: int) -> Column:
    return F.col("key").getField(f"c{number}")


@dataclass(frozen=True)
class GroupsTask:
    """`order` says where the state has our keys, `first` from which value on it has our buffers."""

    spec: Accumulation
    buffers: tuple[Buffers, ...]
    order: tuple[int, ...]
    first: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        return _streams(groups for batch in batches if batch.num_rows for groups in [self._groups(batch)])

    def _groups(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        there, values = batch.column(0).flatten(), batch.column(1).flatten()[self.first :]
        keys = [there[i] if there[i].type == type else there[i].cast(type) for i, type in zip(self.order, self.spec.keys, strict=True)]
        return groups_of(self.spec, self.buffers, unsigned(batch, HASH), keys, values).to_batch()


def _streams(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"blob": pa.array([sink.getvalue().to_pybytes()], pa.binary())})
