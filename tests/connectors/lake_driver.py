"""A flow that writes tables of lakes, as a process to be killed: `python -m tests.connectors.lake_driver FOLDER`.

It takes the files in FOLDER/in one by one, and ends when all are delivered.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from tests.sinks.lakes import Delta, Iceberg


def main(folder: Path) -> None:
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    flow = ns.Flow("till", spark)
    orders = flow.source("orders", ns.files(folder / "in", format="json", schema="item string, price bigint", maxFilesPerTrigger=1))
    spend = flow.view("spend", orders.groupBy("item").agg(F.sum("price").alias("spent"), F.count("*").alias("n")))
    flow.sink("delta", spend, Delta(folder / "delta").sink(key="item"))
    flow.sink("rows", spend, Delta(folder / "delta").sink("rows"))
    flow.sink("ice", spend, Iceberg(folder).sink(key="item"))
    with flow.start(folder / "home", shards=1) as run:
        print("started", flush=True)
        run.processAllAvailable()
    spark.stop()


if __name__ == "__main__":
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    main(Path(sys.argv[1]))
