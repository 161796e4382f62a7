"""Sinks of a pipeline (`dp.create_sink`) as sinks of a flow."""

from pyspark.sql import DataFrame

from nosync.model.sink import Sink
from nosync.pipelines.definitions import Dataset
from nosync.pipelines.paths import local
from nosync.sinks.console import console
from nosync.sinks.folders import csv, json, parquet
from nosync.sinks.foreach_batch import foreachBatch

FOLDERS = {"parquet": parquet, "json": json, "csv": csv}


def sink_of(dataset: Dataset) -> Sink:
    """Folders of files are written by nosync itself, precisely; whatever else by Spark's own writer, an epoch at a time."""
    format, options = str(dataset.format), dict(dataset.options)
    path = local(options["path"]) if "path" in options else None
    if format.lower() == "console":
        return console(int(options.get("numRows", "20")))
    if format.lower() in FOLDERS and path is not None and [*options] == ["path"]:
        return FOLDERS[format.lower()](path, mode="append")

    def write(rows: DataFrame, epoch: int) -> None:
        rows.write.format(format).options(**options).mode("append").save()

    return foreachBatch(write, mode="append")
