"""Nexmark's streams as Parquet, one file a table and epoch, and the static side input of q13."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import nosync as ns

TABLES = ("person", "auction", "bid")
TAKEN = "taken"  # the time at which a bid was taken in


def write(epochs: Sequence[Mapping[str, pa.Table]], folder: Path) -> None:
    """Every table has a file for every epoch, if only an empty one: so the tables stay in step."""
    for number, tables in enumerate(epochs, start=1):
        for name in TABLES:
            (folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(tables[name], folder / name / f"{number:06}.parquet")


def schema(folder: Path, table: str) -> StructType:
    return from_arrow_schema(pq.read_schema(next((folder / table).iterdir())))


def sources(flow: ns.Flow, folder: Path, tables: Sequence[str] = TABLES) -> None:
    """Declares the streams on a flow, one file an epoch."""
    for name in tables:
        source = ns.files(folder / name, format="parquet", schema=schema(folder, name), maxFilesPerTrigger=1)
        flow.source(name, source, stamp=TAKEN if name == "bid" else None)


def side(spark: SparkSession) -> None:
    """The static table that q13 joins."""
    spark.range(0, 100).selectExpr("id key", "concat('value-', id) value").createOrReplaceTempView("side")
