"""A session's JVM side."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from nosync.bridge.packages import packages
from nosync.bridge.trees import helper

OPERATIONS_CHECKED = "spark.sql.streaming.unsupportedOperationCheck"
MAPS_HASHED = "spark.sql.legacy.allowHashOnMapType"


def is_classic(spark: SparkSession) -> bool:
    """Whether the session has a JVM of its own to speak to; one of Spark Connect has none."""
    return hasattr(spark, "_jsparkSession")


def submitted_settings() -> dict[str, str]:
    """What `spark-submit` was told, master and all; nothing where the program was not started by it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def cloned(spark: SparkSession) -> SparkSession:
    """Another session with the settings, functions and temporary views that this one has now."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def has_temporary_view(spark: SparkSession, name: str) -> bool:
    return bool(spark._jsparkSession.sessionState().catalog().getTempView(name).isDefined())


def uris_of(spark: SparkSession, paths: Iterable[str]) -> list[str]:
    """Local paths as Spark spells them in `_metadata.file_path`."""
    path_of = packages(spark).org.apache.hadoop.fs.Path
    return [str(path_of(f"file:{path}").toUri().toString()) for path in paths]


def session_settings(spark: SparkSession, families: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Those that somebody has set and that begin as one of the families, and those of these names, as far as Spark knows them. One call."""
    conf = spark._jsparkSession.sessionState().conf()
    words = str(helper(spark, "Facts").settings(conf, "\n".join(families), "\n".join(names))).split("\0")
    return dict(zip(words[:-1:2], words[1::2], strict=True))


def java_version(spark: SparkSession) -> str:
    """The feature release: 17, 21."""
    return str(packages(spark).java.lang.Runtime.version().feature())


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """What this thread asks of Spark without a job goes by the session's settings meanwhile."""
    sessions = packages(spark).org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def hashed_maps(spark: SparkSession) -> Iterator[None]:
    """Meanwhile hashes of maps are expressions like others, as they are in jobs: an expression finds out once whether it is resolved."""
    before = spark.conf.get(MAPS_HASHED)
    spark.conf.set(MAPS_HASHED, "true")
    try:
        yield
    finally:
        spark.conf.set(MAPS_HASHED, str(before))


@contextmanager
def unchecked_operations(spark: SparkSession) -> Iterator[None]:
    """Meanwhile Spark plans what it has for streams alone: `dropDuplicatesWithinWatermark`, over rows that stand for a stream here."""
    before = spark.conf.get(OPERATIONS_CHECKED)
    spark.conf.set(OPERATIONS_CHECKED, "false")
    try:
        yield
    finally:
        spark.conf.set(OPERATIONS_CHECKED, str(before))


@contextmanager
def settings_in_tasks(spark: SparkSession) -> Iterator[None]:
    """Tasks of jobs that this thread starts meanwhile have the session's settings, as tasks of Spark's own queries have."""
    context = spark._jsc.sc()
    before = context.getLocalProperties()
    properties = before.clone()
    settings = spark._jsparkSession.sessionState().conf().getAllConfs()
    properties.putAll(packages(spark).scala.jdk.javaapi.CollectionConverters.asJava(settings))
    context.setLocalProperties(properties)
    try:
        yield
    finally:
        context.setLocalProperties(before)


def activate(spark: SparkSession) -> None:
    """Spark's physical plans ask the thread which session they belong to."""
    packages(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
