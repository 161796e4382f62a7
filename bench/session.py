"""The Spark session every engine gets: the same heap, two cores, two shuffle partitions, nothing else running."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

STORE = "spark.sql.streaming.stateStore."
PROVIDER = "org.apache.spark.sql.execution.streaming.state."

SETTINGS = {
    "spark-memory": {STORE + "providerClass": PROVIDER + "HDFSBackedStateStoreProvider"},
    "spark-rocksdb": {
        STORE + "providerClass": PROVIDER + "RocksDBStateStoreProvider",
        STORE + "rocksdb.changelogCheckpointing.enabled": "true",
    },
    "spark-stateless": {},
    "nosync": {"spark.python.unix.domain.socket.enabled": "true", "spark.scheduler.mode": "FAIR"},
}


def open_session(engine: str, heap: str, scratch: Path, cores: int = 2, more: Mapping[str, str] | None = None) -> SparkSession:
    """A fresh local session; call it once a process, since the heap is fixed when the JVM starts."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    scratch.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(f"local[{cores}]").appName(f"bench {engine}")
    settings = {
        "spark.driver.memory": heap,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}",
        **SETTINGS[engine],
        **(more or {}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
