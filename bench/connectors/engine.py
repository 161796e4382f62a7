"""One engine that counts by key from topic to topic, in a process of its own: `python -m bench.connectors.engine SPEC`.

Values are "key,time". What comes out, by key, is "count,newest time". nosync writes precisely; Spark's own sink may repeat after a failure.
Says "ready" when it runs, and goes on until its input is closed, or it is killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.session import open_session

NOSYNC, REALTIME, MICRO = "nosync", "realtime", "micro"
ENGINES = (NOSYNC, REALTIME, MICRO)
STORE = {NOSYNC: "nosync", REALTIME: "spark-rocksdb", MICRO: "spark-rocksdb"}
REALTIME_BATCH = "10 seconds"
REALTIME_CORES = 6  # all its tasks run at once
EPOCH_OFFSETS = 500_000


@dataclass(frozen=True)
class Spec:
    """`folder` keeps state over a kill; `jars` are those of Spark's connector."""

    engine: str
    servers: str
    source: str
    target: str
    folder: str
    jars: str
    trigger: str = ""

    def text(self) -> str:
        return json.dumps(asdict(self))


def counted(values: DataFrame) -> DataFrame:
    """The query of all engines, over text "key,time"."""
    parts = F.split(F.col("value").cast("string"), ",")
    rows = values.select(parts[0].alias("k"), parts[1].cast("double").alias("t"))
    return rows.groupBy("k").agg(F.count("*").alias("n"), F.max("t").alias("t")).select(F.col("k").alias("key"), written().alias("value"))


def written() -> Column:
    return F.concat_ws(",", F.col("n").cast("string"), F.format_string("%.6f", F.col("t")))


def start_nosync(session: SparkSession, spec: Spec) -> Any:
    import nosync as ns

    flow = ns.Flow("bench", session)
    source = ns.kafka(spec.servers, spec.source, maxOffsetsPerTrigger=EPOCH_OFFSETS)
    rows = flow.view("counts", counted(flow.source("events", source).select("value")))
    flow.sink("out", rows, ns.to_kafka(spec.servers, spec.target, key="key", value="value"))
    trigger: Any = {"latency": spec.trigger} if spec.trigger else None
    return flow.start(f"{spec.folder}/home", shards=2, quiet=True, trigger=trigger)


def start_spark(session: SparkSession, spec: Spec) -> Any:
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", spec.servers).option("subscribe", spec.source)
    if spec.engine == MICRO:  # Real-time Mode takes no limit
        reader = reader.option("maxOffsetsPerTrigger", EPOCH_OFFSETS)
    rows = counted(reader.option("startingOffsets", "earliest").load())
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", spec.servers).option("topic", spec.target)
    writer = writer.option("checkpointLocation", f"{spec.folder}/checkpoint").outputMode("update")
    return (writer.trigger(realTime=REALTIME_BATCH) if spec.engine == REALTIME else writer).start()


def main(spec: Spec) -> None:
    cores = REALTIME_CORES if spec.engine == REALTIME else 2
    more = {"spark.jars": spec.jars} if spec.engine != NOSYNC else {}
    session = open_session(STORE[spec.engine], "3g", Path(spec.folder) / "scratch", cores, more)
    running = (start_nosync if spec.engine == NOSYNC else start_spark)(session, spec)
    print("ready", flush=True)
    threading.Thread(target=_end_with_input, daemon=True).start()
    running.awaitTermination()


def _end_with_input() -> None:
    """The benchmark ends, or says so: no need for a good end, state is thrown away."""
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(Spec(**json.loads(sys.argv[1])))
