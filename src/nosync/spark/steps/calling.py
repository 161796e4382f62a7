"""Rows that call the tasks of an operator where no input arrives: those of one that changes with event time alone."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.model.columns import DIFF, HASH, ROW
from nosync.model.shards import lower_bounds

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob


def calling(job: "EpochJob", schema: StructType) -> DataFrame:
    """One row for each shard that counts for nothing: its task must run even where no row arrives."""
    bounds = [bound - (1 << 64) if bound >= 1 << 63 else bound for bound in lower_bounds(job.context.shards)]
    markers = job.context.session.createDataFrame([(bound,) for bound in bounds], f"{HASH} bigint").coalesce(1)
    values = {HASH: F.col(HASH), ROW: F.lit(0), DIFF: F.lit(0)}
    return markers.select([values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in schema.fields])

