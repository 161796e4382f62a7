"""Schemas of what passes between the steps of a job."""

from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from nosync.model.columns import DIFF, HASH, SHARD

NOTHING = StructType([StructField("_nothing", IntegerType())])  # of a step that nobody reads
BLOBS = StructType([StructField(SHARD, IntegerType()), StructField("blob", BinaryType())])


def change_schema(schema: StructType, sharded: bool = True) -> StructType:
    """The schema of a change: the columns, where rows lie if they are sharded by shard, and the diff."""
    carried = (HASH, DIFF) if sharded else (DIFF,)
    return StructType(list(schema.fields) + [StructField(name, LongType()) for name in carried])
