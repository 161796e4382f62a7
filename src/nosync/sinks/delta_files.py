"""The Parquet files of a Delta table: written with statistics that readers skip by, read back with their partition's values.

    [COLUMN=VALUE/...]part-<12 digits of the epoch>-<id>.parquet    without the columns of the partition, whose values the log has
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nosync.clients.delta import Lake
from nosync.model.extras import needed
from nosync.model.identifiers import Epoch
from nosync.sinks.lake import FACTOR
from nosync.sinks.replacing import canonical, row_ids
from nosync.sinks.row_id_cache import RowIdCache
from nosync.sinks.rows import NULL

UNSAFE = re.compile(r"[^\w.-]", re.ASCII)  # what the names of folders leave out: readers go by the log
WRITERS = 4  # files at once
LONGEST = 32  # letters of a text in the statistics


class DeltaFiles:
    """The files of one table, whose rows have the schema."""

    def __init__(self, lake: Lake, schema: pa.Schema, partition_by: Sequence[str], file_bytes: int) -> None:
        self.lake, self.schema, self.partition_by, self.file_bytes = lake, schema, tuple(partition_by), file_bytes
        self.live: dict[str, dict[str, Any]] = {}
        self._row_ids = RowIdCache()

    def look(self) -> None:
        """By path, as the log writes it: size, values of the partition and what the statistics say, of all files of the loaded version."""
        found = pa.table(self.lake.table.get_add_actions(flatten=True))
        self.live = {row["path"]: row for row in found.to_pylist()}

    def rows(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The file's rows as the table has them."""
        wanted = [column for column in self.schema if columns is None or column.name in columns]
        stored = [column.name for column in wanted if column.name not in self.partition_by]
        opened = pq.ParquetFile(self.lake.opened(unquote(path)), coerce_int96_timestamp_unit="us")
        found, count = opened.read(stored), opened.metadata.num_rows
        arrays = [
            pa.repeat(pa.scalar(self.live[path][f"partition.{column.name}"], column.type), count)
            if column.name in self.partition_by
            else found.column(column.name).cast(column.type)
            for column in wanted
        ]
        return pa.table(arrays, schema=pa.schema(wanted))

    def ranges(self, path: str) -> dict[str, tuple[Any, Any]]:
        file = self.live[path]
        found = {name: (file.get(f"min.{name}"), file.get(f"max.{name}")) for name in self.schema.names}
        return {name: ends for name, ends in found.items() if None not in ends}

    def row_ids(self, path: str, columns: Sequence[str]) -> pa.Array:
        return self._row_ids.get(path, lambda: row_ids(self.rows(path, columns), columns))

    def write(self, epoch: Epoch, rows: pa.Table) -> list[Any]:
        """Writes rows into files of a sane size; their actions for the log. On this machine, files are on the disk when this returns."""
        pieces = [(piece, values) for values, part in by_partition(rows, self.partition_by) for piece in self._pieces(part)]
        if len(pieces) == 1:
            return [self._write(epoch, *pieces[0])]
        with ThreadPoolExecutor(WRITERS) as pool:
            return list(pool.map(lambda piece: self._write(epoch, *piece), pieces))

    def _pieces(self, rows: pa.Table) -> Iterator[pa.Table]:
        size = -(-rows.num_rows // max(1, round(rows.nbytes / (self.file_bytes * FACTOR))))
        yield from (rows.slice(start, size) for start in range(0, rows.num_rows, size))

    def _write(self, epoch: Epoch, rows: pa.Table, partition: dict[str, Any]) -> Any:
        values = {name: _said(value) for name, value in partition.items()}
        folder = "".join(f"{UNSAFE.sub('_', name)}={UNSAFE.sub('_', value or NULL)}/" for name, value in values.items())
        path = f"{folder}part-{epoch:012d}-{uuid4().hex}.parquet"
        stream = pa.BufferOutputStream()
        pq.write_table(rows, stream, compression="snappy")
        content = stream.getvalue()
        self.lake.put(path, content)
        action = needed("deltalake.transaction", "delta", self.lake.what).AddAction
        return action(path, content.size, values, int(time.time() * 1000), True, json.dumps(statistics(rows)))

    def removal(self, path: str) -> Any:
        file = self.live[path]
        action = needed("deltalake.transaction", "delta", self.lake.what).RemoveAction
        values = {column: _said(file[f"partition.{column}"]) for column in self.partition_by}
        return action(path, True, int(time.time() * 1000), int(file["size_bytes"]), values)


def by_partition(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """By the values of a partition, its rows without those columns."""
    if not columns or not rows.num_rows:
        yield from [({}, rows)] if rows.num_rows else []
        return
    codes = canonical(rows, columns).dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = [*np.flatnonzero(np.diff(codes[order])) + 1, len(order)]
    for start, end in zip([0, *ends[:-1]], ends):
        part = rows.take(order[start:end])
        yield {name: part.column(name)[0].as_py() for name in columns}, part.drop_columns(list(columns))


def statistics(rows: pa.Table) -> dict[str, Any]:
    """Numbers of rows and nulls, and the least and greatest of whole numbers, days, times and short texts."""
    plain = [name for name in rows.column_names if not pa.types.is_nested(rows.schema.field(name).type)]
    ranges = {column: found for column in rows.column_names if (found := _range(rows.column(column))) is not None}
    return {
        "numRecords": rows.num_rows,
        "nullCount": {name: rows.column(name).null_count for name in plain},
        "minValues": {column: found[0] for column, found in ranges.items()},
        "maxValues": {column: found[1] for column, found in ranges.items()},
    }


def _range(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind)):
        return None
    found = pc.min_max(column).as_py()
    low, high = found["min"], found["max"]
    if low is None or (isinstance(high, str) and max(len(low), len(high)) > LONGEST):
        return None
    return _plain(low), _plain(high)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _said(value: Any) -> str | None:
    """A value of a partition as the log has it."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00")
    return str(value)
