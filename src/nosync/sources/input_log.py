"""The log of a source that cannot be read again: its rows are written into the home before they belong to an epoch.

    HOME/input/<source>/<random>.arrow    the rows of one slice, Arrow IPC, with `_diff` last
"""

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.journal.names import source_folder
from nosync.journal.taken import Taken
from nosync.model.source import Slice, Source
from nosync.model.store import fingerprint


class InputLog:
    """Stands in for a source whose `replayable` is False. Its slices name files of the home; those are deleted when they are trimmed."""

    trims = True

    def __init__(self, source: Source) -> None:
        self.source = source

    @property
    def append_only(self) -> bool:
        return self.source.append_only

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name, self.spark = name, spark
        self.schema = self.source.declare(name, spark)
        return self.schema

    def start(self, folder: Path, taken: Iterable[Slice]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.source.start(folder, taken.inner(_inner) if isinstance(taken, Taken) else map(_inner, taken))

    @property
    def marks(self) -> Any:
        of = getattr(self.source, "marks", None)
        return None if of is None else lambda slice: of(_inner(slice))

    def available(self) -> Slice | None:
        inner = self.source.available()
        if inner is None:
            return None
        table = self._table(inner)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue().to_pybytes()
        name = f"{uuid.uuid4().hex}.arrow"
        temporary = self.folder / f".{name}"
        temporary.write_bytes(content)
        temporary.rename(self.folder / name)
        return {"file": name, "rows": table.num_rows, "bytes": len(content), "mark": fingerprint(content), "inner": inner}

    def _table(self, inner: Slice) -> pa.Table:
        direct = getattr(self.source, "table", None)
        return direct(inner) if direct else self.source.read(self.spark, inner).toArrow()

    def files(self, slice: Slice) -> dict[str, str]:
        return {f"{source_folder(self.name)}/{slice['file']}": slice["mark"]}

    def _stored(self, slice: Slice) -> pa.Table:
        with pa.OSFile(str(self.folder / slice["file"]), "rb") as file:
            return fitted(pa.ipc.open_file(file).read_all(), arrow_schema(self.schema, f'source "{self.name}"'))

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        table = self._stored(slice)
        return spark.createDataFrame(table, StructType(list(self.schema.fields)).add("_diff", LongType()))

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """The rows in the order in which they were given, for a ledger."""
        table, text = self._stored(slice), pa.nulls(slice["rows"], pa.string())
        columns = dict(zip(table.column_names, table.columns, strict=True))
        diff = columns.pop("_diff")
        zeros = pa.array(np.zeros(slice["rows"], np.int64))
        columns |= {"_raw": text, "_reason": text, "_file": text, "_p0": zeros, "_p1": zeros, "_p2": pa.array(np.arange(slice["rows"]))}
        fields = [StructField(name, StringType()) for name in ("_raw", "_reason", "_file")]
        fields += [StructField(name, LongType()) for name in ("_p0", "_p1", "_p2", "_diff")]
        return spark.createDataFrame(pa.table(columns | {"_diff": diff}), StructType([*self.schema.fields, *fields]))

    def rows(self, slice: Slice) -> int:
        return int(slice["rows"])

    def weight(self, slice: Slice) -> int:
        return int(slice["bytes"])

    def trim(self, slice: Slice) -> None:
        self.source.trim(slice["inner"])


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows that were written under another schema: columns that are new are null, those that are gone are left out, types are cast."""
    if (table.schema.names[:-1], table.schema.types[:-1]) == (schema.names, schema.types):
        return table
    columns = [table.column(f.name).cast(f.type) if f.name in table.schema.names else pa.nulls(len(table), f.type) for f in schema]
    return pa.table([*columns, table.column("_diff")], names=[*schema.names, "_diff"])


def _inner(slice: Slice) -> Slice:
    """What the source itself said."""
    found: Slice = slice["inner"]
    return found


def lasting(source: Any) -> Source:
    """The source itself where it can be read again, else with a log of its own."""
    found: Source = source if getattr(source, "replayable", True) else InputLog(source)
    return found
