"""Names of sources and views inside SQL: visible for one statement, without leaving anything in the user's session."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from nosync.bridge.sessions import has_temporary_view
from nosync.model.quoting import quoted

CREATE = re.compile(r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?view\s+(`[^`]+`|[\w.]+)\s+as\s+(.*)", re.IGNORECASE | re.DOTALL)


def created_view(statement: str) -> tuple[str, str] | None:
    """Name and query of a `create view NAME as QUERY`, or None for any other statement."""
    match = CREATE.fullmatch(statement.strip().rstrip(";"))
    return (match[1].strip("`"), match[2]) if match else None


def mentioned(statement: str, frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Those of the frames whose names occur in a statement, and perhaps some more: making one visible costs a hundred calls."""
    text = statement.casefold()
    return {name: frame for name, frame in frames.items() if name.casefold() in text}


@contextmanager
def visible(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as temporary views; views of the user's with the same names are put back afterwards. Names that differ by case alone
    are left out where SQL does not distinguish them: better no answer than that of the other.
    """
    if str(spark.conf.get("spark.sql.caseSensitive")).lower() != "true":
        counts = Counter(name.lower() for name in frames)
        frames = {name: frame for name, frame in frames.items() if counts[name.lower()] == 1}
    hidden = {name: spark.table(quoted(name)) for name in frames if "." not in name and has_temporary_view(spark, name)}
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(quoted(name))
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)
        for name, frame in hidden.items():
            frame.createOrReplaceTempView(quoted(name))
