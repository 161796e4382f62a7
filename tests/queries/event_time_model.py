"""Event time once more, in a few lines and without nosync: which rows come too late for a window."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nosync import testing
from nosync.history.home import Home
from nosync.testing import Batch, Change, Tables
from nosync.testing.oracle import Program

Row = tuple[Any, ...]
Closes = Callable[[Row], float]  # when the window of a row ends, in seconds
START = datetime(2024, 5, 1, tzinfo=UTC)
SCHEMAS = {"s": "k string, at timestamp, v bigint, d double"}


def row(key: str | None, second: float, value: int = 1) -> Row:
    return (key, START + timedelta(seconds=second), value, value / 8)


def second_of(found: Row) -> float:
    seconds: float = (found[1] - START).total_seconds()
    return seconds


def tumbling(length: float) -> Closes:
    return lambda found: (second_of(found) // length + 1) * length


def on_time(changes: Sequence[Change], closes: Closes, delay: float) -> list[Change]:
    """The changes without what comes too late: a row's window has ended by the newest time of the epochs before, less the delay."""
    kept, newest = [], None
    for change in changes:
        bound = -1e18 if newest is None else newest - delay

        def timely(rows: Sequence[Row], bound: float = bound) -> list[Row]:
            return [found for found in rows if closes(found) > bound]

        kept.append(Change({"s": timely(change.added.get("s", ()))}, {"s": timely(change.removed.get("s", ()))}))
        for found in change.added.get("s", ()):
            newest = second_of(found) if newest is None else max(newest, second_of(found))
    return kept


def judge(spark: SparkSession, home: Path, program: Program, changes: Sequence[Change], lateness: dict[str, Closes], delay: float) -> None:
    """Every view at every epoch is what Spark answers in batch over the rows that were not late for it."""
    for closes in dict.fromkeys(lateness.values()):
        tables = Tables(spark, SCHEMAS, on_time(changes, closes, delay))

        def batch_at(epoch: int, tables: Tables = tables) -> Batch:
            batch = tables.batch(epoch)
            program(batch)
            return batch

        views = [view for view, own in lateness.items() if own is closes]
        testing.judge(Home(home), batch_at, range(1, len(changes) + 1), views)
