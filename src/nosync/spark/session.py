"""Sessions: the user's, and the flow's own with pinned settings, so that the user's stay as they are."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from nosync.model.errors import Invalid, Unavailable

EPOCH_POOL = "nosync-epochs"
PINNED = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
FLOW_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    "spark.sql.legacy.allowHashOnMapType": "true",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxMetadataStringLength": "100",
}


def active_or_local() -> SparkSession:
    """The active session, or a local one on all cores with the settings that make small epochs quick."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "nosync",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.scheduler.mode": "FAIR",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        words = str(error).splitlines()[0]
        raise Unavailable(f"Spark did not start: {words}", hint="It needs Java 17 or newer: `java -version`.") from error
    return session


def flow_session(spark: SparkSession, shards: int) -> SparkSession:
    """A session of the flow's own: the user's settings as they are now, with those pinned that epochs need."""
    if not hasattr(spark, "_jsparkSession"):
        raise Invalid("nosync needs classic PySpark", hint="Start Spark with a master, not with Spark Connect.")
    context = spark.sparkContext
    if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # else workers run the first python3 on the PATH, which may lack what this one has
    session = SparkSession(context, spark._jsparkSession.cloneSession())
    for name, value in FLOW_SETTINGS.items():
        session.conf.set(name, value)
    session.conf.set("spark.sql.shuffle.partitions", str(shards))
    return session


def settings_of(spark: SparkSession) -> dict[str, str]:
    """What an answer may depend on besides the input."""
    return {name: str(spark.conf.get(name)) for name in PINNED}
