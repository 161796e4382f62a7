"""Where a row stands in its input: the same order however Spark cuts and distributes the files.

A row's position is (number of its file in the slice, start of its split in the file, number in its task): splits of a file ascend, and a
task reads each split from its start. The numbers themselves depend on the cut; their order does not.
"""

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from nosync.bridge.sessions import uris_of
from nosync.model.columns import POSITION

FILE_PATH = "_metadata.file_path"


def positions(spark: SparkSession, paths: Sequence[str]) -> list[Column]:
    """The three columns of a position, for rows read from these files."""
    numbers = {uri: number for number, uri in enumerate(uris_of(spark, paths))}
    parts = _number(sorted(numbers.items())), F.col("_metadata.file_block_start"), F.monotonically_increasing_id()
    return [part.cast("bigint").alias(name) for name, part in zip(POSITION, parts, strict=True)]


def _number(numbers: Sequence[tuple[str, int]]) -> Column:
    """The number of a row's file, by halving: a handful of comparisons for any number of files."""
    if len(numbers) == 1:
        return F.lit(numbers[0][1])
    middle = len(numbers) // 2
    return F.when(F.col(FILE_PATH) < numbers[middle][0], _number(numbers[:middle])).otherwise(_number(numbers[middle:]))
