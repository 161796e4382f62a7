"""`python -m tests.random_sql --seeds 1000 --first 1`: a flow of random queries for each seed; what differs is shrunk and printed.

Epochs go narrow and wide in turn. With `--ways` each flow goes every way, and the bits are compared.
"""

import argparse
import os
import sys
import time

from pyspark.sql import SparkSession

from tests.random_sql.judge import grown, judge, refused, reported, ways_apart, wrong
from tests.random_sql.shrink import shrunk

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.nosync.way": "mixed",  # over so few rows all epochs would be narrow
}


def session() -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("random-sql")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="random-sql", description="Random queries over random changes, against Spark in batch.")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=int(time.time()) % 1_000_000, help="given again, the queries are the same")
    parser.add_argument("--tries", type=int, default=60, help="how often a failing query is tried smaller")
    parser.add_argument("--ways", action="store_true", help="also whether every way gives the same bits")
    asked = parser.parse_args()
    spark, failures, views, refusals = session(), 0, 0, 0
    for seed in range(asked.first, asked.first + asked.seeds):
        case = grown(seed)
        found = judge(spark, case)
        views, refusals = views + len(case.views), refusals + len(refused(found))
        for view, text in wrong(found).items():
            failures += 1
            smaller = shrunk(case.alone(view), lambda other: bool(wrong(judge(spark, other))), asked.tries)
            print(f"seed {seed}: {text}\n{reported(smaller, 'shrunk to')}\n", flush=True)
        for text in ways_apart(spark, case) if asked.ways else ():
            failures += 1
            print(f"seed {seed}: {reported(case, text)}\n", flush=True)
        print(f"seed {seed}: {views} views, {refusals} refused, {failures} wrong", flush=True)
    spark.stop()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
