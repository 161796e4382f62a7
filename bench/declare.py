"""`python -m bench.declare --spark CHECKOUT`: what declaring queries of TPC-DS costs, beside Spark's own optimiser.

The queries and the schema are read from a checkout of Spark; nothing of it is kept. For each query a number of rounds, each with the
optimiser first and then the declaration, both of a fresh DataFrame; medians. A call is one round trip to the JVM.
"""

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

import nosync as ns

RESOURCES = Path("sql/core/src/test/resources/tpcds")
SCHEMA = Path("sql/core/src/test/scala/org/apache/spark/sql/TPCDSSchema.scala")
TABLE = re.compile(r'"(\w+)" ->\s*"""(.*?)"""', re.DOTALL)
QUERIES = "q7,q64,q14a"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench-declare", description="Declaring TPC-DS beside Spark's optimiser.")
    parser.add_argument("--spark", type=Path, required=True, help="a checkout of Spark, of the release that is installed")
    parser.add_argument("--only", default=QUERIES, help="names of queries, between commas")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    tables = dict(_tables((asked.spark / SCHEMA).read_text()))
    queries = {name: _query((asked.spark / RESOURCES / f"{name}.sql").read_text()) for name in asked.only.split(",")}
    spark = _session()
    _round(spark, tables, queries)  # the JVM warms up
    rounds = [_round(spark, tables, queries) for _ in range(asked.rounds)]
    print(f"{'query':8}{'optimiser':>12}{'declaring':>12}{'ratio':>8}{'calls':>8}")
    for name in queries:
        optimiser, declaring, calls = (statistics.median(one[name][place] for one in rounds) for place in range(3))
        print(f"{name:8}{optimiser:9.0f} ms{declaring:9.0f} ms{declaring / optimiser:8.1f}{calls:8.0f}")
    spark.stop()
    return 0


def _round(spark: SparkSession, tables: dict[str, str], queries: dict[str, str]) -> dict[str, tuple[float, float, int]]:
    """By query: milliseconds of the optimiser, of declaring, and its calls. `declaring` has the optimiser in it."""
    flow = ns.Flow("declare", spark)
    frames = {name: flow.source(name, ns.memory(columns)) for name, columns in tables.items()}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    found = {}
    for name, query in queries.items():
        optimiser = _milliseconds(spark.sql(query)._jdf.queryExecution().optimizedPlan)
        frame = spark.sql(query)
        with _counted() as calls:
            declaring = _milliseconds(lambda name=name, frame=frame: flow.view(name, frame))
        found[name] = optimiser, declaring, calls[0]
    return found


def _milliseconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


@contextmanager
def _counted() -> Iterator[list[int]]:
    """Counts what is sent to the JVM meanwhile, but for objects that Python lets go of."""
    calls, send = [0], JavaClient.send_command

    def counting(self: JavaClient, command: str, *arguments: Any, **named: Any) -> Any:
        calls[0] += not command.startswith("m\nd\n")
        return send(self, command, *arguments, **named)

    JavaClient.send_command = counting
    try:
        yield calls
    finally:
        JavaClient.send_command = send


def _tables(text: str) -> Iterator[tuple[str, str]]:
    for found in TABLE.finditer(text):
        columns = re.sub(r"\s*\|", "", found[2])
        yield found[1], re.sub(r"(?:var)?char\(\d+\)", "string", columns, flags=re.IGNORECASE)


def _query(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text).strip().rstrip(";")


def _session() -> SparkSession:
    os.environ["SPARK_LOCAL_IP"], os.environ["PYSPARK_PYTHON"] = "127.0.0.1", sys.executable
    builder = SparkSession.builder.master("local[2]").appName("bench-declare").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


if __name__ == "__main__":
    sys.exit(main())
