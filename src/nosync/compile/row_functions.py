"""Functions over batches that are declared to work row by row, wrapped so that what they return comes and goes with its rows.

The rows of one diff go into one call, as a stream; those of the other diffs that a task meets wait for calls of their own. Runs in Spark's
Python workers.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nosync.model.arguments import checked

DIFF_COLUMN = "_nosync_diff"
DECLARED = "nosync_row_by_row"
Function = Callable[[Iterator[Any]], Iterator[Any]]


@checked()
def row_by_row(function: Function) -> Function:
    """Declares that what a function for `mapInPandas` or `mapInArrow` makes of a row follows from that row alone: not from the rows beside
    it, their order or number, nor from what it saw before. It may return none, one or many rows for a row, and prepare something first,
    such as a model. An epoch calls it with the rows that changed.

    >>> def doubled(frames):
    ...     for frame in frames:
    ...         yield frame.assign(price=frame.price * 2)
    >>> purchases.mapInPandas(ns.row_by_row(doubled), purchases.schema)
    DataFrame[user: string, price: double]
    """

    @wraps(function)
    def declared(batches: Iterator[Any]) -> Iterator[Any]:
        return function(batches)

    vars(declared)[DECLARED] = True
    return declared


def is_row_by_row(function: Function) -> bool:
    return bool(vars(function).get(DECLARED)) if hasattr(function, "__dict__") else False


def by_diff_in_pandas(function: Function, columns: list[str]) -> Function:
    """Over pandas frames, whose last column is the diff. `columns` are what the function shall see."""

    def split(frame: pd.DataFrame) -> Iterator[tuple[int, Any]]:
        for diff, rows in frame.groupby(DIFF_COLUMN):
            yield int(diff), rows[columns].reset_index(drop=True)

    def joined(result: Any, diff: int) -> Any:
        if not isinstance(result, pd.DataFrame):
            return result  # Spark says what is wrong with it
        return result.assign(**{DIFF_COLUMN: diff}) if len(result) else None

    return _called(function, split, joined)


def by_diff_in_arrow(function: Function, columns: list[str]) -> Function:
    """Over Arrow batches."""

    def split(batch: pa.RecordBatch) -> Iterator[tuple[int, Any]]:
        diffs = batch.column(batch.num_columns - 1)
        bare = pa.RecordBatch.from_arrays(batch.columns[:-1], names=columns)
        for diff in pc.unique(diffs).to_pylist():
            yield diff, bare.filter(pc.equal(diffs, diff))

    def joined(result: Any, diff: int) -> Any:
        if not isinstance(result, pa.RecordBatch):
            return result
        if not result.num_rows:
            return None
        names = [*result.schema.names, DIFF_COLUMN]
        return pa.RecordBatch.from_arrays([*result.columns, pa.array([diff] * result.num_rows, pa.int64())], names=names)

    return _called(function, split, joined)


def _called(
    function: Function, split: Callable[[Any], Iterator[tuple[int, Any]]], joined: Callable[[Any, int], Any]
) -> Function:
    @wraps(function)
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        waiting: dict[int, list[Any]] = {}
        parts = ((diff, rows) for batch in batches for diff, rows in split(batch))
        first = next(parts, None)
        if first is None:
            return

        def stream() -> Iterator[Any]:
            yield first[1]
            for diff, rows in parts:
                if diff == first[0]:
                    yield rows
                else:
                    waiting.setdefault(diff, []).append(rows)

        yield from _with_diff(function(stream()), first[0])
        for diff, rows in parts:  # the function did not ask for all of them
            waiting.setdefault(diff, []).append(rows)
        waiting.pop(first[0], None)
        for diff in sorted(waiting):
            yield from _with_diff(function(iter(waiting[diff])), diff)

    def _with_diff(results: Iterable[Any], diff: int) -> Iterator[Any]:
        for result in results:
            found = joined(result, diff)
            if found is not None:
                yield found

    return run
