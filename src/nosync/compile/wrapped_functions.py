"""Functions of whole groups, wrapped so that their rows say which group they come from.

A user's function may return any rows, or none. Marks ride beside its input and beside its output: the hash and the bytes of the
key, and whether the row is a ghost. A group without rows in the result gets one row of nulls, marked as a ghost; for a group that is
gone the user's function is not called. Runs in Spark's Python workers.
"""

from collections.abc import Callable, Sequence
from inspect import getfullargspec
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.types import BinaryType, BooleanType, LongType

MARKS = ("_nosync_hash", "_nosync_group", "_nosync_ghost")
MARK_TYPES = (LongType(), BinaryType(), BooleanType())
Function = Callable[..., Any]
Columns = Sequence[list[str]]


def _answer(function: Function, inputs: int, iterates: bool) -> Function:
    """The function, whether it asks for the key or not, whether it takes rows or an iterator of them: here, of one piece."""
    keyed = len(getfullargspec(function).args) > inputs

    def answer(key: Any, *rows: Any) -> Any:
        given = [iter([one]) for one in rows] if iterates else list(rows)
        result = function(key, *given) if keyed else function(*given)
        return list(result) if iterates else result

    return answer


def marked_pandas(function: Function, columns: Columns, iterates: bool, schema: pa.Schema) -> Function:
    """Over pandas frames. `columns` are those of each input that the function shall see, `schema` is what it returns."""
    answer = _answer(function, len(columns), iterates)

    def run(key: Any, *frames: pd.DataFrame) -> Any:
        some = next(frame for frame in frames if len(frame))
        marks = {name: some[name].iloc[0] for name in MARKS}
        if not marks[MARKS[2]]:
            result = answer(key, *(frame[names] for frame, names in zip(frames, columns, strict=True)))
            if iterates:
                result = pd.concat([_named(one, schema.names) for one in result]) if result else pd.DataFrame()
            if not isinstance(result, pd.DataFrame):
                return result  # Spark says what is wrong with it
            if len(result):
                return _named(result, schema.names).assign(**marks)
        return pd.DataFrame({name: pd.Series([None], dtype=object) for name in schema.names}).assign(**marks | {MARKS[2]: True})

    return _with_arguments(run, len(columns))


def _named(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The frame with names for its columns, where it left them to their order."""
    if len(frame.columns) == len(names) and not any(isinstance(name, str) for name in frame.columns):
        return frame.set_axis(list(names), axis=1)
    return frame


def marked_arrow(function: Function, columns: Columns, iterates: bool, schema: pa.Schema) -> Function:
    """Over Arrow tables."""
    answer = _answer(function, len(columns), iterates)

    def run(key: Any, *tables: pa.Table) -> Any:
        some = next(table for table in tables if table.num_rows)
        marks = [some.column(name)[0].as_py() for name in MARKS]
        if not marks[2]:
            bare = [table.select(names) for table, names in zip(tables, columns, strict=True)]
            result = answer(key, *(table.combine_chunks().to_batches()[0] if iterates else table for table in bare))
            if iterates:
                result = pa.Table.from_batches(result, schema=None if result else schema)
            if not isinstance(result, pa.Table):
                return result  # Spark says what is wrong with it
            if result.num_rows:
                return _appended(result, marks)
        nothing = pa.Table.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        return _appended(nothing, [*marks[:2], True])

    return _with_arguments(run, len(columns))


def _appended(table: pa.Table, marks: list[Any]) -> pa.Table:
    for name, mark, sort in zip(MARKS, marks, (pa.int64(), pa.binary(), pa.bool_()), strict=True):
        table = table.append_column(pa.field(name, sort), pa.array([mark] * table.num_rows, sort))
    return table


def _with_arguments(run: Function, inputs: int) -> Function:
    """Spark counts a function's arguments."""
    if inputs == 1:
        return lambda key, rows: run(key, rows)
    return lambda key, left, right: run(key, left, right)
