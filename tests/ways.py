"""Pins the way that epochs take, for a part of a test: sessions are shared, so the way of before comes back."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from nosync.spark.ways import SETTING

EVERY_WAY = ("narrow", "wide", "mixed")


@contextmanager
def pinned(session: SparkSession, way: str) -> Iterator[None]:
    """Flows that start meanwhile take this way."""
    before = session.conf.get(SETTING, "")
    session.conf.set(SETTING, way)
    try:
        yield
    finally:
        if before:
            session.conf.set(SETTING, before)
        else:
            session.conf.unset(SETTING)
