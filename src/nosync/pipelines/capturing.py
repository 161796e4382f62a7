"""Auto CDC as ordinary queries over all events: the newest of each key (SCD type 1), or the history of each key (type 2).

The order in which events arrive means nothing, only their sequence does; so no tombstones are needed, and any table that the flow keeps
can be the target. Events without a key or a sequence have no place: they go to the view `<table>.rejected`.
"""

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from nosync.bridge.columns import column_named
from nosync.model.errors import Invalid
from nosync.pipelines.definitions import Capture

SEQUENCE, GONE = "__nosync_sequence", "__nosync_gone"
START, END = "__START_AT", "__END_AT"


def captured(rows: DataFrame, capture: Capture) -> tuple[DataFrame, DataFrame]:
    """The rows of the target, and the events that have no place in it."""
    for name in (*capture.keys, *capture.columns, *capture.left_out, *capture.tracked, *capture.untracked):
        if name.lower() not in map(str.lower, rows.columns):
            hint = f"There are: {', '.join(rows.columns)}."
            raise Invalid(f'the flow "{capture.name}" ({capture.where}) names a column "{name}", which its source has not', hint=hint)
    gone = F.lit(False) if capture.deletes is None else F.coalesce(capture.deletes.cast("boolean"), F.lit(False))
    events = rows.withColumns({SEQUENCE: capture.sequence, GONE: gone})
    placed = reduce(lambda one, other: one & other, [column_named(key).isNotNull() for key in (*capture.keys, SEQUENCE)])
    columns = _chosen(rows.columns, capture.columns, capture.left_out)
    target = _history(events.where(placed), capture, columns) if capture.history else _newest(events.where(placed), capture, columns)
    return target, events.where(~placed).select(*map(column_named, rows.columns))


def _newest(events: DataFrame, capture: Capture, columns: Sequence[str]) -> DataFrame:
    """Of an update and a removal with the same sequence, the update counts."""
    newest_first = Window.partitionBy(*map(column_named, capture.keys)).orderBy(column_named(SEQUENCE).desc(), column_named(GONE))
    ranked = events.withColumn("__nosync_rank", F.row_number().over(newest_first))
    return ranked.where("__nosync_rank = 1").where(f"NOT {GONE}").select(*map(column_named, columns))


def _history(events: DataFrame, capture: Capture, columns: Sequence[str]) -> DataFrame:
    """A row for each run of events that agree in what is tracked: of the last of them, from the first until the next. Of events with the
    same sequence one counts, a removal before others."""
    order = Window.partitionBy(*map(column_named, capture.keys)).orderBy(SEQUENCE, GONE)
    following = F.lead(SEQUENCE).over(order)
    single = events.withColumn("__nosync_next", following).where(f"__nosync_next IS NULL OR __nosync_next <> {SEQUENCE}")
    keys = {key.lower() for key in capture.keys}
    tracked = _chosen([name for name in columns if name.lower() not in keys], capture.tracked, capture.untracked)

    def one_run(moved: Callable[[Column], Column]) -> Column:
        """Whether the event beside, which is before or after, belongs to the same run."""
        agreeing = [column_named(name).eqNullSafe(moved(column_named(name)).over(order)) for name in tracked]
        there = ~column_named(GONE) & ~F.coalesce(moved(column_named(GONE)).over(order), F.lit(True))
        return reduce(lambda one, other: one & other, agreeing, there)

    marked = single.withColumns(
        {"__nosync_before": one_run(F.lag), "__nosync_after": one_run(F.lead), "__nosync_until": F.lead(SEQUENCE).over(order)}
    )
    begun = F.when(~column_named("__nosync_before"), column_named(SEQUENCE))
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    runs = marked.withColumn("__nosync_since", F.last(begun, ignorenulls=True).over(so_far))
    shown = runs.where(f"NOT {GONE} AND NOT __nosync_after")
    return shown.select(*map(column_named, columns), F.col("__nosync_since").alias(START), F.col("__nosync_until").alias(END))


def _chosen(columns: Sequence[str], named: Sequence[str], left_out: Sequence[str]) -> list[str]:
    wanted, unwanted = {name.lower() for name in named}, {name.lower() for name in left_out}
    return [name for name in columns if (not wanted or name.lower() in wanted) and name.lower() not in unwanted]
