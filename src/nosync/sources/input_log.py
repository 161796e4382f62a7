"""The log of a source that cannot be read again: its rows are written into the home before they belong to an epoch.

    HOME/input/<source>/<random>.arrow    the rows of one slice, Arrow IPC, with `_diff` last

Promise: the source may give up rows only after their file stands and their epoch is recorded. A write that fails is tried again with the
same slice.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.journal.names import source_folder
from nosync.journal.taken import Taken
from nosync.model import source as protocols
from nosync.model.bound import BoundSource
from nosync.model.columns import DIFF, POSITION, REJECTION
from nosync.model.errors import Invalid, Unavailable, reading
from nosync.model.slices import as_recorded
from nosync.model.source import Slice
from nosync.model.store import checked, fingerprint
from nosync.state.private import make_folder
from nosync.store.disk import failing_as, whole_file

RESTORE = "Start again: it is fetched from the remote if that has it, else its epoch is rolled back."


def logged(source: BoundSource, name: str, schema: StructType, spark: SparkSession) -> BoundSource:
    """The source with a log before it, where it needs one."""
    if not source.read_once:
        return source
    if source.rejecting is not None:
        raise Invalid(
            f'source "{name}" has acknowledge, so its rows are written down once, and rejects, which would have to read them again',
            hint="Let read return what does not fit too, marked by a column of its own, and filter by that in a view.",
        )
    log = InputLog(source, name, schema, spark)
    return BoundSource(
        append_only=source.append_only, start=log.start, available=log.available, read=log.read, rows=log.rows, weight=log.weight,
        files=log.files, acknowledge=log.acknowledge, table=log.table, trim=log.trim, marks=None if source.marks is None else log.marks,
        events=log.events, shaped=None,
        shaped_events=protocols.Shaped(log.events_schema, log.raw_events, lambda rows: rows),
        close=source.close, lag=source.lag, on_arrival=source.on_arrival,
    )  # fmt: skip


@dataclass
class InputLog:
    """Its slices name files of the home; those are deleted when they are trimmed."""

    source: BoundSource
    name: str
    schema: StructType
    spark: SparkSession
    folder: Path = field(default_factory=Path)
    unwritten: Slice | None = None

    def start(self, folder: Path, taken: protocols.Taken) -> None:
        self.folder, self.unwritten = folder, None
        make_folder(folder)
        latest = None if taken.latest is None else _inner(taken.latest)
        self.source.start(folder, Taken(lambda: map(_inner, taken), latest, taken.marks, taken.skipped))

    def marks(self, slice: Slice) -> Iterable[str]:
        return self.source.marks(_inner(slice)) if self.source.marks is not None else ()

    def available(self) -> Slice | None:
        if self.unwritten is None:
            self.unwritten = self.source.available()
        if self.unwritten is None:
            return None
        slice, self.unwritten = self._written(as_recorded(self.name, self.unwritten)), None
        return slice

    def _written(self, inner: Slice) -> Slice:
        given = self.source.table(inner) if self.source.table is not None else None
        table = self.source.read(self.spark, inner).toArrow() if given is None else given
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table)
        content = buffer.getvalue().to_pybytes()
        name = f"{uuid.uuid4().hex}.arrow"
        try:
            with whole_file(self.folder / name) as file:
                file.write(content)
        except OSError as error:
            words = f'source "{self.name}": {table.num_rows:,} rows could not be written into the home: {error.strerror or error}'
            raise Unavailable(words, hint="Make room or restore access: it is tried again, and the rows wait.") from error
        return {"file": name, "rows": table.num_rows, "bytes": len(content), "mark": fingerprint(content), "inner": inner}

    def acknowledge(self, slice: Slice) -> None:
        self.source.acknowledge(_inner(slice))

    def files(self, slice: Slice) -> dict[str, str]:
        return {f"{source_folder(self.name)}/{slice['file']}": slice["mark"]}

    def table(self, slice: Slice) -> pa.Table:
        """The rows of a slice; `Corrupt` where its file is not what was written."""
        path = self.folder / checked(slice["file"])
        with failing_as(f'"{path}" could not be read'):
            content = path.read_bytes()
        with reading(f'"{path}", rows of source "{self.name}",', RESTORE):
            return fitted(_table_in(content, slice["rows"]), arrow_schema(self.schema, f'source "{self.name}"'))

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        table = self.table(slice)
        return spark.createDataFrame(table, StructType(list(self.schema.fields)).add(DIFF, LongType()))

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """The rows in the order in which they were given, for a ledger."""
        return spark.createDataFrame(self.raw_events(slice), self.events_schema)

    def raw_events(self, slice: Slice) -> pa.Table:
        """`events` without Spark."""
        table, text = self.table(slice), pa.nulls(slice["rows"], pa.string())
        columns = dict(zip(table.column_names, table.columns, strict=True))
        diff = columns.pop(DIFF)
        zeros = pa.array(np.zeros(slice["rows"], np.int64))
        columns |= dict.fromkeys(REJECTION, text)
        columns |= dict(zip(POSITION, (zeros, zeros, pa.array(np.arange(slice["rows"]))), strict=True))
        return pa.table(columns | {DIFF: diff})

    @property
    def events_schema(self) -> StructType:
        fields = [StructField(name, StringType()) for name in REJECTION]
        fields += [StructField(name, LongType()) for name in (*POSITION, DIFF)]
        return StructType([*self.schema.fields, *fields])

    def rows(self, slice: Slice) -> int:
        return int(slice["rows"])

    def weight(self, slice: Slice) -> int:
        return int(slice["bytes"])

    def trim(self, slice: Slice) -> None:
        """Its files are the flow's to delete."""
        if self.source.trim is not None:
            self.source.trim(_inner(slice))


def _table_in(content: bytes, rows: int) -> pa.Table:
    """The rows in bytes that somebody else may have written: no offset may lead out of them. `ValueError` where they hold no such table."""
    try:
        table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
    except OSError as error:  # Arrow's word for a file that is cut off
        raise ValueError(str(error)) from error
    table.validate(full=True)
    if table.num_rows != rows:
        raise ValueError(f"{table.num_rows} rows instead of {rows}")
    return table


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that were written under another schema: columns that are new are null, those that are gone are left out, types are cast."""
    if (table.schema.names, table.schema.types) == ([*schema.names, DIFF], [*schema.types, pa.int64()]):
        return table
    columns = [table.column(f.name).cast(f.type) if f.name in table.schema.names else pa.nulls(len(table), f.type) for f in schema]
    return pa.table([*columns, table.column(DIFF).cast(pa.int64())], names=[*schema.names, DIFF])


def _inner(slice: Slice) -> Slice:
    """What the source itself said."""
    found: Slice = slice["inner"]
    return found
