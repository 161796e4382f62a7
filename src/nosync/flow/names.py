"""Names of sources and views inside SQL: visible for one statement, without leaving anything in the user's session."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from nosync.bridge.errors import JavaError, no_traces_logged, words_of
from nosync.bridge.sessions import has_temporary_view
from nosync.flow.statements import not_valid
from nosync.model.errors import Conflict, Invalid
from nosync.model.quoting import check_name, quoted

WITH_WORDS = r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?view\s+(?:if\s+not\s+exists\s+)?"
CREATE = re.compile(WITH_WORDS + r"(`[^`]+`|[\w.]+)\s+as\s+(.*)", re.IGNORECASE | re.DOTALL)


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
    if not _distinguishes_case(spark):
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


def _distinguishes_case(spark: SparkSession) -> bool:
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def asked(spark: SparkSession, statement: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """A query in SQL over the frames and the session's own tables."""
    with visible(spark, mentioned(statement, frames)), no_traces_logged():
        try:
            return spark.sql(statement)
        except (PySparkException, JavaError) as error:
            raise not_valid(statement, words_of(error), frames) from None


def check_free(flow: str, name: str, taken: Collection[str], running: bool, spark: SparkSession) -> None:
    """Whether something more may be declared under a name."""
    if running:
        hint = 'Stop the run, declare, and start again on the same home with on_change="rebuild".'
        raise Conflict(f'flow "{flow}" is running: "{name}" would lack all rows before', hint=hint)
    check_name(name, "a source, view or sink")
    other = next((one for one in taken if one != name and one.lower() == name.lower()), None)
    if other is not None and not _distinguishes_case(spark):
        hint = "Choose another name: SQL does not distinguish these two."
        raise Invalid(f'flow "{flow}" already has "{other}", which differs from "{name}" in case alone', hint=hint)
    if name in taken:
        raise Invalid(f'flow "{flow}" already has a source, view or sink "{name}"', hint="Choose another name.")
