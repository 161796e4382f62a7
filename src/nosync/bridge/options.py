"""The options that Spark's readers of files know, by Spark's own account."""

from pyspark.sql import SparkSession

from nosync.bridge.catalyst import Java
from nosync.bridge.packages import packages

CATALYST, SOURCES = "org.apache.spark.sql.catalyst", "org.apache.spark.sql.execution.datasources"
OF_FORMAT = {
    "csv": f"{CATALYST}.csv.CSVOptions",
    "json": f"{CATALYST}.json.JSONOptions",
    "parquet": f"{SOURCES}.parquet.ParquetOptions",
    "orc": f"{SOURCES}.orc.OrcOptions",
    "text": f"{SOURCES}.text.TextOptions",
}
OF_ALL = ("ignoreCorruptFiles", "ignoreMissingFiles")  # what Spark's `FileSourceOptions` has, without telling


def known_options(spark: SparkSession, format: str) -> tuple[str, ...]:
    """Names for a format."""
    found = set(OF_ALL)
    for name in (OF_FORMAT[format], f"{SOURCES}.FileIndexOptions"):
        owner: Java = getattr(packages(spark), name)
        found.update(str(owner.getAllOptions().mkString(",")).split(","))
    return tuple(sorted(filter(None, found)))
