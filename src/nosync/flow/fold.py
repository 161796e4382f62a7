"""Any function of one's own over the rows of a key, with a state that it carries from epoch to epoch."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType, TimestampNTZType

from nosync.bridge.arrow import arrow_type
from nosync.compile.event_time import MARK, SPARKS_MARK
from nosync.compile.rules.fold import Folding, marked
from nosync.flow.frames import check_frame
from nosync.kernels.order import orderable
from nosync.model.arguments import check_takes, checked
from nosync.model.errors import Invalid
from nosync.spark.steps.fold import fold_at_once


@checked(key="Pass by=.", keys="Pass by=.", function="Pass fn=.", schema="Pass state= and output=, as \"column type, ...\".")
def fold(
    rows: DataFrame,
    by: str | Sequence[str],
    fn: Callable[[tuple[Any, ...], Any, list[Any]], tuple[Any, ...]],
    state: str | StructType,
    output: str | StructType,
    order_by: str | Sequence[str] = (),
    retractions: bool = False,
    deterministic: bool = True,
    timers: bool = False,
) -> DataFrame:
    """What `fn(key, state, rows)` returns for each key that has new rows, epoch by epoch; to be used in views like any DataFrame.

    `key` is a tuple, `state` a Row of the schema `state` (None at first), `rows` a list of Rows: the epoch's new ones of this key, by
    `order_by` (nulls first) and else in an order that depends on the rows alone. It returns the new state (None forgets the key) and the
    rows to add, as tuples, dicts or Rows of the schema `output`. Rows once added stay.

    The same arguments must give the same answer: an epoch may be computed again. With `deterministic=False` they need not: states and what
    was emitted are then taken from the log, and what is lost there on every tier cannot be had again.

    With `timers=True` it returns a third thing, a datetime or None: when the watermark passes that time, and no later call has said
    otherwise, it is called with no rows. A time that has passed already counts as soon as event time moves on. A key that is forgotten
    has no timer.

    Of rows that may be removed again, `retractions=True` gives those of the epoch that came or went, with `_diff` as their last column.
    Outside of a flow, all rows of a key come in one call.

    >>> def count(key, state, rows):
    ...     n = (state.n if state else 0) + len(rows)
    ...     return (n,), [(key[0], n)]
    >>> ns.fold(purchases, by="user", fn=count, state="n int", output="user string, n int")
    DataFrame[user: string, n: int]
    """
    check_frame("ns.fold", rows, "Pass the DataFrame of a source or query first.", "was given")
    keys, order = ([name] if isinstance(name, str) else list(name) for name in (by, order_by))
    if not callable(fn):
        raise Invalid(f"fn is a {type(fn).__name__}, not a function", hint="Pass a function of (key, state, rows).")
    check_takes("the function of ns.fold", fn, "key", "state", "rows")
    if not keys:
        raise Invalid("a fold has no key", hint="Pass by=[...]; a constant column makes one key of all rows.")
    names = rows.schema.names
    for name in (*keys, *order):
        if names.count(name) != 1:
            raise Invalid(f'the rows have no single column "{name}"', hint=f"There are {', '.join(names)}.")
    for name in order:
        if not orderable(arrow_type(rows.schema[name].dataType, name)):
            raise Invalid(f'order_by="{name}" is {rows.schema[name].dataType.simpleString()}', hint="Order by numbers, times or texts.")
    kept, emitted = _schema(rows, state, "state"), _schema(rows, output, "output")
    by_name = StructType([StructField(name, rows.schema[name].dataType) for name in keys])
    positions = tuple(names.index(name) for name in order)
    options = retractions, deterministic, timers, _naive(rows.schema)
    folding = Folding(fn, by_name, StructType(list(rows.schema.fields)), kept, emitted, positions, *options)
    return rows.groupBy(*keys).applyInArrow(_at_once(folding), emitted)


def _naive(schema: StructType) -> bool:
    """Whether event time comes without a zone."""
    return any({MARK, SPARKS_MARK} & {*field.metadata} and isinstance(field.dataType, TimestampNTZType) for field in schema.fields)


def _schema(rows: DataFrame, given: str | StructType, what: str) -> StructType:
    try:
        found = given if isinstance(given, StructType) else rows.sparkSession.createDataFrame([], given).schema
    except PySparkException as error:
        words = str(error).strip().splitlines()[0]
        raise Invalid(f'{what}="{given}" is no schema: {words}', hint='Write "column type, ...".') from None
    if not found.fields:
        raise Invalid(f"{what}= has no columns", hint='Write "column type, ...".')
    return StructType([StructField(field.name, field.dataType) for field in found.fields])


def _at_once(folding: Folding) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """The function as a grouped map of Spark's; by its name a flow finds the fold."""

    def run(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return fold_at_once(folding, [column.combine_chunks() for column in table.columns], tuple(value.as_py() for value in key))

    run.__name__ = marked(folding)
    return run
