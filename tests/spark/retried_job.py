"""A program of its own: a flow of two stateful levels whose functions fail once. Run as `retried_job.py MASTER HOME FLAGS`.

The function below the aggregates and the one above them each raise at their first call; later the one above kills the executor that runs
it, once, so that finished shuffle output is lost and a stage runs again. Each leaves a file in FLAGS. Without FLAGS nothing fails.
"""

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.nosync.way": "wide",  # narrow epochs have few tasks that could fail
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


def run_job(spark: SparkSession, home: str, flags: str | None) -> None:
    def first_time(name: str) -> bool:
        try:
            os.close(os.open(Path(flags) / name, os.O_CREAT | os.O_EXCL)) if flags else None
        except FileExistsError:
            return False
        return flags is not None

    def below(x: int) -> int:
        if first_time("below"):
            raise RuntimeError("only once")
        return x

    def above(n: int) -> int:
        if n > 100 and first_time("above"):
            raise RuntimeError("only once")
        if n > 150 and first_time("killed"):
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])  # the parent of the worker's daemon
            if b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{executor}/cmdline").read_bytes():
                raise AssertionError(f"process {executor} is no executor")
            os.kill(executor, signal.SIGKILL)
        return n

    flow = ns.Flow("retried", spark)
    source = ns.memory("k int, x int")
    rows = flow.source("s", source)
    first = rows.withColumn("x", F.udf(below, "int")("x")).groupBy("k").agg(F.sum("x").alias("t"), F.count("*").alias("n"))
    first = flow.view("first", first.withColumn("n", F.udf(above, "long")("n")))
    flow.view("second", first.groupBy("n").agg(F.sum("t").alias("t"), F.count("*").alias("m")))
    flow.view("third", first.groupBy(F.expr("t % 3").alias("r")).agg(F.expr("percentile(t, 0.5)").alias("p"), F.max("n").alias("most")))
    with flow.start(home=home, shards=2) as run:
        for epoch in range(3):
            source.add([(k, k * epoch) for k in range(8) for _ in range(51)])
            run.processAllAvailable()


def main(master: str, home: str, flags: str) -> None:
    builder = SparkSession.builder.master(master).config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    run_job(spark, home, flags)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
