"""Reading files of a lake's table in tasks, straight into Arrow: wherever they lie, with the values of their partition."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nosync.clients.delta import Lake
from nosync.clients.iceberg import pyiceberg
from nosync.model.columns import DIFF
from nosync.model.errors import Failed, Unreadable

VERSION = "_version"
CHANGE = "_change_type"
COMES = ("insert", "update_postimage")
FIELD_ID = b"PARQUET:field_id"
ROWS = 1 << 16


class File(NamedTuple):
    """A file of a version. `diff`: 1 for rows that come, -1 for rows that go, 0 where the file says it by row. `values` are those of its
    partition, where they are not in the file."""

    path: str
    version: int
    diff: int
    size: int
    values: dict[str, str | None]


class Opener(Protocol):
    """Opens files, in whatever process."""

    def open(self, path: str) -> Any:
        """`FileNotFoundError` where there is none."""


@dataclass(frozen=True)
class DeltaOpener:
    """Files below a table of Delta. The environment is that of the driver, where the credentials are."""

    address: str
    what: str
    environment: Mapping[str, str] = field(repr=False)

    def open(self, path: str) -> Any:
        os.environ.update(self.environment)
        return Lake(self.address, self.what).opened(path)


@dataclass(frozen=True)
class IcebergOpener:
    """Files that are known by their whole address."""

    properties: Mapping[str, str] = field(repr=False)
    location: str

    def open(self, path: str) -> Any:
        return pyiceberg("io", "a task that reads Iceberg").load_file_io(dict(self.properties), self.location).new_input(path).open()


@dataclass(frozen=True)
class LakeTask:
    """Reads the shares whose numbers it is given: the columns, `_version`, and `_diff`. `fields`: by column, Iceberg's number of it."""

    opener: Opener
    shares: tuple[tuple[File, ...], ...]
    schema: pa.Schema
    what: str
    fields: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column(0).to_pylist():
                for file in self.shares[share]:
                    yield from self._rows(file)

    def _rows(self, file: File) -> Iterator[pa.RecordBatch]:
        try:
            opened = pq.ParquetFile(self.opener.open(file.path), coerce_int96_timestamp_unit="us")
        except FileNotFoundError:
            raise Unreadable(f'{self.what}: file "{file.path}" is gone: vacuum took it, or expired snapshots') from None
        except pa.ArrowInvalid as error:
            raise Failed(f'{self.what}: file "{file.path}" is no Parquet file: {error}') from None
        there = self._there(opened.schema_arrow)
        wanted = [there[column.name] for column in self.schema if column.name in there]
        for batch in opened.iter_batches(ROWS, columns=wanted + ([CHANGE] if file.diff == 0 else [])):
            arrays = [self._column(column, batch, there, file) for column in self.schema]
            version = pa.repeat(pa.scalar(file.version, pa.int64()), batch.num_rows)
            diff = pa.repeat(pa.scalar(file.diff, pa.int64()), batch.num_rows)
            if file.diff == 0:
                comes = pc.is_in(batch.column(CHANGE).cast(pa.string()), pa.array(COMES))
                diff = pc.if_else(comes, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
            yield pa.RecordBatch.from_arrays([*arrays, version, diff], names=[*self.schema.names, VERSION, DIFF])

    def _there(self, found: pa.Schema) -> dict[str, str]:
        """By column, what it is called in a file."""
        by_id = {int(column.metadata[FIELD_ID]): column.name for column in found if FIELD_ID in (column.metadata or {})}
        if not self.fields or not by_id:
            return {name: name for name in self.schema.names if name in found.names}
        return {name: by_id[number] for name, number in self.fields.items() if number in by_id}

    def _column(self, column: pa.Field, batch: pa.RecordBatch, there: Mapping[str, str], file: File) -> pa.Array:
        if column.name in file.values:
            return pa.repeat(value_of(file.values[column.name], column.type), batch.num_rows)
        if column.name not in there:
            return pa.nulls(batch.num_rows, column.type)
        return batch.column(there[column.name]).cast(column.type)


def value_of(said: str | None, kind: pa.DataType) -> pa.Scalar:
    """A value of a partition, which the log of Delta has as text."""
    if said is None or said == "":
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        text = said.replace("T", " ").removesuffix("Z").removesuffix("+00:00")
        return pa.scalar(text).cast(pa.timestamp("us")).cast(pa.int64()).cast(kind)
    return pa.scalar(said).cast(kind)


def shared(files: Sequence[File], tasks: int) -> tuple[tuple[File, ...], ...]:
    """The files in at most so many shares of about the same size."""
    shares: list[list[File]] = [[] for _ in range(max(1, min(tasks, len(files))))]
    sizes = [0] * len(shares)
    for file in sorted(files, key=lambda file: -file.size):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(file)
        sizes[smallest] += file.size
    return tuple(tuple(share) for share in shares)
