"""Parquet files that hold the declared columns in the declared types, read without Spark."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from nosync.model.columns import DIFF
from nosync.model.errors import Unreadable


def plain_rows(paths: Iterable[str], schema: pa.Schema) -> pa.Table:
    """All rows, each added once. A file that cannot be read is named: `Unreadable`."""
    whole = pa.concat_tables([schema.empty_table(), *(_rows(path, schema) for path in paths)])
    return whole.append_column(pa.field(DIFF, pa.int64()), pa.array([1] * len(whole), pa.int64()))


def _rows(path: str, schema: pa.Schema) -> pa.Table:
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            return file.read(columns=schema.names, use_threads=False).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = f"cannot be read: {str(error).splitlines()[0]}"
        hint = f'Put it back as it was, and start again. Or set it aside for good: nosync skip HOME SOURCE "{path}"'
        raise Unreadable(f'file "{path}" {reason}', hint=hint, files={path: reason}) from error
