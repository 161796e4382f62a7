"""Arrow rows as PostgreSQL reads them in bulk: CSV for COPY, written by Arrow itself, and the types of columns.

Nothing is rounded: doubles are written in the shortest form that reads back as they are. Nested values are JSON.
"""

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from nosync.sinks.json_values import plain

PLAIN = {
    pa.bool_(): "boolean", pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint",
    pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text", pa.large_string(): "text", pa.binary(): "bytea",
    pa.large_binary(): "bytea", pa.date32(): "date", pa.null(): "text",
}  # fmt: skip
COPY_OPTIONS = "(format csv)"
NUMBER = "_nosync_number"


def column_type(type: pa.DataType) -> str:
    """The type of a column of a table that is made for such values."""
    if pa.types.is_decimal(type):
        return f"numeric({type.precision},{type.scale})"
    if pa.types.is_timestamp(type):
        return "timestamptz" if type.tz else "timestamp"
    if pa.types.is_time(type):
        return "time"
    return PLAIN.get(type, "jsonb")


def as_csv(table: pa.Table) -> pa.Buffer:
    """The rows, an empty field for null: texts stand in quotes, empty ones too."""
    columns = [_written(column.combine_chunks()) for column in table.columns]
    out = pa.BufferOutputStream()
    if columns:
        flat = pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
        pyarrow.csv.write_csv(flat, out, pyarrow.csv.WriteOptions(include_header=False))
    return out.getvalue()


def _written(column: pa.Array) -> pa.Array:
    """The column as something that Arrow writes as CSV and PostgreSQL reads as the same value."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    type = column.type
    if pa.types.is_decimal(type) or pa.types.is_time(type):
        return pc.cast(column, pa.string())
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())
    if column_type(type) == "jsonb":
        return pa.array([None if value is None else json.dumps(plain(value, type)) for value in column.to_pylist()], pa.string())
    return column


def has_key_in(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> np.ndarray:
    """Of which rows the others have the key. A key with a null is in none."""
    found = np.zeros(rows.num_rows, bool)
    if rows.num_rows and others.num_rows:
        numbered = rows.select(list(key)).append_column(NUMBER, pa.array(np.arange(rows.num_rows)))
        both = numbered.join(others.select(list(key)), keys=list(key), join_type="left semi")
        found[both.column(NUMBER).to_numpy()] = True
    return found
