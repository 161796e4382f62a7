"""Event time within a job: rows stamped with their arrival, times observed on the way, late rows counted."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nosync.bridge.frames import OBSERVED, microseconds_of
from nosync.model.columns import DIFF
from nosync.model.identifiers import TraceName

NEVER = -(1 << 63)
Observed = Mapping[str, Mapping[str, int]]


def stamped(rows: DataFrame, column: str, at: float) -> DataFrame:
    """The rows with the time at which their epoch was opened, as the journal records it; the diff stays last."""
    time = F.timestamp_micros(F.lit(round(at * 1e6)).cast("bigint")).alias(column)
    return rows.select(*[rows[name] for name in rows.columns[:-1]], time, rows[DIFF])


def time_of(source: str) -> str:
    """The name under which a source's event time is observed."""
    return f"time:{source}"


def observed(rows: DataFrame, source: str, column: str) -> DataFrame:
    """The same rows; on the way the newest event time among those that are added is noted."""
    newest = F.coalesce(F.max(F.when(rows[DIFF] > 0, microseconds_of(rows, column))), F.lit(NEVER))
    return rows.observe(f"{OBSERVED}{time_of(source)}", newest.alias("newest"))


def newest_in(table: pa.Table, column: str) -> int:
    """What `observed` notes, of rows that need no Spark to be read."""
    added = table.column(column).filter(pc.greater(table.column(DIFF), 0))
    newest = pc.max(added.cast(pa.int64())).as_py()
    return NEVER if newest is None else int(newest)


def seen_times(found: Observed) -> dict[str, int]:
    """The newest event time by source; those without any are left out."""
    times = {name.removeprefix("time:"): counts["newest"] for name, counts in found.items() if name.startswith("time:")}
    return {name: time for name, time in times.items() if time > NEVER}


def late_counts(found: Observed) -> dict[TraceName, int]:
    """Late rows by trace."""
    late = {name.removeprefix("late:"): counts["late"] for name, counts in found.items() if name.startswith("late:")}
    return {TraceName(trace): count for trace, count in late.items() if count}
