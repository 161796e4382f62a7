"""Tables of lakes as sources: first the rows of a version, then what each later version changes.

A slice is `{"version", "left", "bytes", "files"}`: the version up to which it goes, how many files of the first version later epochs will
take, and the files to read, each with what becomes of its rows. Files of a lake never change, so a slice can be read again as long as
nobody vacuums them away. Versions that only move rows (compaction) are passed over. An epoch has whole versions.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, LongType, MapType, StringType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.model.columns import DIFF, POSITION, REJECTION
from nosync.model.errors import Failed, Invalid
from nosync.model.quoting import quoted
from nosync.model.source import Slice, Taken
from nosync.sources.lake_task import VERSION, File, LakeTask, Opener, shared

MAX_BYTES = 128 << 20


@dataclass(eq=False)
class LakeSource(ABC):
    """What tables of Delta and Iceberg have in common as sources."""

    said: str  # how the user wrote it
    what: str
    max_bytes: int = MAX_BYTES
    appends: bool = False

    @property
    def append_only(self) -> bool:
        return self.appends

    def __repr__(self) -> str:
        return self.said

    @abstractmethod
    def _schema(self) -> StructType:
        """The table's columns as of now; `Invalid` where there is no table."""

    @abstractmethod
    def _refresh(self) -> int:
        """Looks at the table; its newest version."""

    @abstractmethod
    def _snapshot(self, version: int) -> list[File]:
        """All files of a version, in an order that stays."""

    @abstractmethod
    def _changes(self, version: int) -> tuple[int, list[File]] | None:
        """The next version, and what it changes; None where there is none."""

    @abstractmethod
    def _opener(self) -> Opener: ...

    def _fields(self) -> dict[str, int]:
        """By column, the number by which its files know it."""
        return {}

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name = name
        self.schema = self._schema()
        self.arrow: pa.Schema = arrow_schema(self.schema, f'source "{name}"')
        return self.schema

    def start(self, folder: Path, taken: Taken) -> None:
        latest = taken.latest
        self.version: int | None = latest["version"] if latest is not None else None
        self.left: int = latest["left"] if latest is not None else 0
        self.waiting: list[File] | None = None

    def available(self) -> Slice | None:
        newest = self._refresh()
        self._check_schema()
        if self.version is None:
            self.version, self.waiting = newest, self._snapshot(newest)
            self.left = len(self.waiting)
        if self.left:
            return self._of_snapshot(self.version)
        files, size, version = list[File](), 0, self.version
        while size < self.max_bytes and (found := self._changes(version)) is not None:
            version = found[0]
            files += found[1]
            size += sum(file.size for file in found[1])
        slice = self._slice(version, 0, files) if files else None
        self.version = version
        return slice

    def _of_snapshot(self, version: int) -> Slice:
        """Some more of its files."""
        if self.waiting is None:
            self.waiting = self._snapshot(version)
        rest, size = self.waiting[len(self.waiting) - self.left :], 0
        for count, file in enumerate(rest):
            size += file.size
            if count and size > self.max_bytes:
                rest = rest[:count]
                break
        self.left -= len(rest)
        return self._slice(version, self.left, rest)

    def _slice(self, version: int, left: int, files: Sequence[File]) -> Slice:
        if self.append_only and (gone := next((file for file in files if file.diff <= 0), None)) is not None:
            words = f'source "{self.name}": version {gone.version} of {self.what} takes rows back, and it was declared with appendOnly=True'
            raise Invalid(words, hint="Declare it with appendOnly=False, on a new home.")
        return {"version": version, "left": left, "bytes": sum(file.size for file in files), "files": [list(file) for file in files]}

    def _check_schema(self) -> None:
        found = self._schema()
        if [(f.name, f.dataType) for f in found.fields] == [(f.name, f.dataType) for f in self.schema.fields]:
            return
        before, now = ({f.name: f.dataType.simpleString() for f in schema.fields} for schema in (self.schema, found))
        odd = [f'"{name}" is gone' for name in before if name not in now]
        odd += [f'"{name}" is new' for name in now if name not in before]
        odd += [f'"{name}" is {now[name]}, not {kind}' for name, kind in before.items() if now.get(name, kind) != kind]
        words = f'source "{self.name}": {self.what} has other columns now: {", ".join(odd) or "in another order"}'
        raise Failed(words, hint="Start the program again on the same home: it declares the columns of now.")

    def _rows(self, spark: SparkSession, slice: Slice) -> DataFrame:
        schema = StructType([*self.schema.fields, StructField(VERSION, LongType()), StructField(DIFF, LongType())])
        found = [File(*entry) for entry in slice["files"]]
        order = {version: place for place, version in enumerate(dict.fromkeys(file.version for file in found))}
        files = [file._replace(version=order[file.version]) for file in found]
        shares = shared(files, spark.sparkContext.defaultParallelism)
        task = LakeTask(self._opener(), shares, self.arrow, self.what, self._fields())
        return spark.range(0, len(shares), 1, len(shares)).mapInArrow(task, schema)

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """Of a file that was written anew, most rows go and come: they are left out where Spark can group by them."""
        rows, columns = self._rows(spark, slice), [quoted(name) for name in self.schema.names]
        if any(entry[2] <= 0 for entry in slice["files"]) and _groupable(self.schema):
            return rows.groupBy(*columns).agg(F.sum(quoted(DIFF)).alias(DIFF)).where(F.col(DIFF) != 0)
        return rows.select(*columns, DIFF)

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """By version, first what goes: for a ledger."""
        rows = self._rows(spark, slice)
        order = [F.col(VERSION), F.when(F.col(DIFF) < 0, 0).otherwise(1), F.lit(0)]
        places = [column.cast("bigint").alias(name) for name, column in zip(POSITION, order, strict=True)]
        nothing = [F.lit(None).cast(StringType()).alias(name) for name in REJECTION]
        return rows.select(*map(quoted, self.schema.names), *nothing, *places, DIFF)

    def weight(self, slice: Slice) -> int:
        return int(slice["bytes"])

    def gone(self, version: Any) -> Failed:
        words = f'source "{self.name}": {self.what} has lost what followed version {version}: its history was cleaned up before it was read'
        return Failed(words, hint="Begin on a new home, with the rows of now; keep the table's history for longer than a flow may stand.")


def _groupable(schema: StructType) -> bool:
    """Whether equal rows are one group for Spark, to the bit."""
    text = schema.json()
    return not any(f'"{kind.typeName()}"' in text for kind in (DoubleType(), FloatType())) and f'"{MapType.typeName()}"' not in text
