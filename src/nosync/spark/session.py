"""Sessions: the user's, and the flow's own with pinned settings, so that the user's stay as they are."""

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nosync.bridge.errors import silence
from nosync.bridge.sessions import cloned, is_classic, submitted_settings
from nosync.model.errors import Invalid, Unavailable
from nosync.model.run import own_name
from nosync.spark import class_archive
from nosync.store.disk import LocalDisk

log = logging.getLogger("nosync")
EPOCH_POOL = "nosync-epochs"
POOLS = Path(__file__).parent / "pools.xml"
LOG4J = Path(__file__).parent / "log4j2.properties"
FLOW_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "262144",
    "spark.sql.legacy.allowHashOnMapType": "true",
    "spark.sql.files.openCostInBytes": str(256 << 10),  # counted as part of a file when it is split: 4 MiB left cores idle
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxMetadataStringLength": "100",
}
SUBMITTED_SETTINGS = {
    "spark.app.name": "nosync",
    "spark.scheduler.mode": "FAIR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.speculation": "true",  # of two attempts at a task one counts, and both write the same bytes
    "spark.speculation.minTaskRuntime": "1s",
}
NARROW_SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",  # for a thousand rows, making code takes longer than interpreting
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.localRelationThreshold": str(1 << 30),
}


def active_or_local() -> SparkSession:
    """The active session, or what `spark-submit` asked for, or a local one on all cores with the settings that make small epochs quick."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    submitted = submitted_settings()
    return _started({**SUBMITTED_SETTINGS, **submitted}) if submitted else local_session({})


def local_session(wanted: Mapping[str, str]) -> SparkSession:
    """A local session, with these settings before ours."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "nosync",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": " ".join([f"-Dlog4j2.configurationFile={LOG4J.as_uri()}", *class_archive.options()]),
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": f"file:{POOLS}",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.daemon.module": "nosync.spark.daemon",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    }
    return _started({**settings, **wanted})


@contextmanager
def calm_sessions(environment: MutableMapping[str, str] = os.environ) -> Iterator[None]:
    """Sessions that a user's program starts meanwhile log as ours do and show no bars of their own, unless they are told otherwise: by a
    configuration of Spark's, or by the program.
    """
    before = {name: environment.get(name) for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS")}
    environment.setdefault("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.showConsoleProgress=false pyspark-shell")
    configured = Path(environment.get("SPARK_CONF_DIR", Path(environment.get("SPARK_HOME", "/nowhere")) / "conf")) / "log4j2.properties"
    if not configured.exists():
        environment["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={LOG4J.as_uri()} {before['SPARK_SUBMIT_OPTS'] or ''}".strip()
    try:
        yield
    finally:
        for name, said in before.items():
            environment.pop(name, None)
            environment.update({} if said is None else {name: said})


def _started(settings: Mapping[str, str]) -> SparkSession:
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    silence()
    begun = time.monotonic()
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        words = str(error).splitlines()[0]
        raise Unavailable(f"Spark did not start: {words}", hint="It needs Java 17 or newer: `java -version`.") from error
    seconds, url = time.monotonic() - begun, session.sparkContext.uiWebUrl
    way_out = "" if class_archive.options() else " (`nosync warm`, once, and it starts in about half the time)"
    log.info("Spark %s started after %.1f s; its own pages: %s%s", session.version, seconds, url, way_out)
    return session


def checked_session(spark: SparkSession) -> SparkSession:
    """The session a flow is declared in. On this machine its workers shall run this very Python, not the first on the PATH."""
    if not is_classic(spark):
        raise Invalid("nosync needs classic PySpark", hint="Start Spark with a master, not with Spark Connect.")
    if str(spark.sparkContext.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable
    return spark


def is_one_host(spark: SparkSession) -> bool:
    """Whether tasks run in the driver's own process tree."""
    return str(spark.sparkContext.master).startswith(("local[", "local*")) or spark.sparkContext.master == "local"


def sees_home(spark: SparkSession, home: Path) -> bool:
    """Whether every executor sees what is written into the home: a folder of the same name may be there and be another."""
    if is_one_host(spark):
        return True
    slots, disk, name = spark.sparkContext.defaultParallelism * 4, LocalDisk(home), f".{own_name()}"
    file = str(disk.path(name))
    disk.replace(name, b"")
    try:
        return all(spark.sparkContext.parallelize(range(slots), slots).map(lambda _: os.path.isfile(file)).collect())
    finally:
        disk.delete(name)


def flow_session(spark: SparkSession, shards: int) -> SparkSession:
    """A session of the flow's own: the user's settings as they are now, with those pinned that epochs need."""
    session = cloned(spark)
    for name, value in FLOW_SETTINGS.items():
        session.conf.set(name, value)
    set_shards(session, shards)
    return session


def set_shards(session: SparkSession, shards: int) -> None:
    """Spark's own exchanges have as many partitions as there are shards."""
    session.conf.set("spark.sql.shuffle.partitions", str(shards))


def narrow_session(flow: SparkSession) -> SparkSession:
    """The flow's session for epochs of few rows. Settings that answers depend on are the same."""
    session = cloned(flow)
    for name, value in NARROW_SETTINGS.items():
        session.conf.set(name, value)
    return session
