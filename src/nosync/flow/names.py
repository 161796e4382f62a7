"""Names of sources and views inside SQL: visible for one statement, without leaving anything in the user's session."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from nosync.bridge.sessions import has_temporary_view

CREATE = re.compile(r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?view\s+(`[^`]+`|[\w.]+)\s+as\s+(.*)", re.IGNORECASE | re.DOTALL)


def created_view(statement: str) -> tuple[str, str] | None:
    """Name and query of a `create view NAME as QUERY`, or None for any other statement."""
    match = CREATE.fullmatch(statement.strip().rstrip(";"))
    return (match[1].strip("`"), match[2]) if match else None


@contextmanager
def visible(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as temporary views; views of the user's with the same names are put back afterwards."""
    hidden = {name: spark.table(f"`{name}`") for name in frames if "." not in name and has_temporary_view(spark, name)}
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(f"`{name}`")
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)
        for name, frame in hidden.items():
            frame.createOrReplaceTempView(f"`{name}`")
