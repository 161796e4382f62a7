"""A session's JVM side."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

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
    path_of = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
    return [str(path_of(f"file:{path}").toUri().toString()) for path in paths]


def java_version(spark: SparkSession) -> str:
    """The feature release: 17, 21."""
    return str(spark._jvm.java.lang.Runtime.version().feature())  # type: ignore[union-attr]


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """What this thread asks of Spark without a job goes by the session's settings meanwhile."""
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
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
    properties.putAll(spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava(settings))  # type: ignore[union-attr]
    context.setLocalProperties(properties)
    try:
        yield
    finally:
        context.setLocalProperties(before)


def activate(spark: SparkSession) -> None:
    """Spark's physical plans ask the thread which session they belong to."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
