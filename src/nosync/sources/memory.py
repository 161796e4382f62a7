"""Rows given by the program itself, for tests and notebooks.

What was given since the last epoch is one epoch. It cannot be had again: the flow keeps a log of it (see `input_log`).
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.types import LongType, StructType

from nosync.model.errors import Invalid
from nosync.model.source import Slice


def memory(schema: str | StructType, changes: str | None = None, sequence: str | None = None) -> "Memory":
    """A source with `.add(rows)` and `.remove(rows)`; rows are tuples, dicts or Rows, as for `spark.createDataFrame`.

    `changes` and `sequence` are as for `files`. With a key (`flow.source(..., key=)`) adding replaces, and removing looks at the key alone.
    """
    return Memory(schema, changes=changes, sequence=sequence)


@dataclass(eq=False)
class Memory:
    """See `memory`."""

    given: str | StructType
    append_only: bool = False
    replayable: bool = False
    changes: str | None = None
    sequence: str | None = None
    pending: list[tuple[list[Any], int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    tables: dict[int, pa.Table] = field(default_factory=dict)

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name = name
        try:
            self.schema = self.given if isinstance(self.given, StructType) else spark.createDataFrame([], self.given).schema
        except PySparkException as error:
            words = str(error).strip().splitlines()[0]
            raise Invalid(f'source "{name}": the schema "{self.given}" cannot be read: {words}', hint='Write "column type, ...".') from None
        return self.schema

    def add(self, rows: Iterable[Any]) -> None:
        """These rows belong to the collection from the next epoch on."""
        self._give(list(rows), 1)

    def remove(self, rows: Iterable[Any]) -> None:
        """These rows, each of them added before, leave the collection with the next epoch."""
        self._give(list(rows), -1)

    def _give(self, rows: list[Any], diff: int) -> None:
        if not hasattr(self, "schema"):
            raise Invalid("the memory source is not part of a flow yet", hint="Pass it to flow.source(...) first.")
        if not rows:
            return
        self._table(rows, diff)  # wrong rows are the giver's error, at once
        with self.lock:
            self.pending.append((rows, diff))

    def _table(self, rows: list[Any], diff: int) -> pa.Table:
        try:
            table = LocalDataToArrowConversion.convert(rows, self.schema, False)
        except (PySparkException, pa.ArrowException, TypeError, ValueError, AssertionError) as error:
            words = str(error).strip().splitlines()[0]
            hint = f"Rows are {self.schema.simpleString()}."
            raise Invalid(f'source "{self.name}": a row does not fit the schema: {words}', hint=hint) from None
        return table.append_column("_diff", pa.array([diff] * len(rows), pa.int64()))

    def start(self, folder: Path, taken: Iterable[Slice]) -> None:
        """What was given before stays: it is not part of an epoch yet."""

    def available(self) -> Slice | None:
        with self.lock:
            given, self.pending = [(rows, diff) for rows, diff in self.pending if rows], []
        if not given:
            return None
        self.count += 1
        self.tables[self.count] = pa.concat_tables([self._table(rows, diff) for rows, diff in given]).combine_chunks()
        return {"number": self.count}

    def table(self, slice: Slice) -> pa.Table:
        """The rows of a slice, once."""
        return self.tables.pop(slice["number"])

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        schema = StructType(list(self.schema.fields)).add("_diff", LongType())
        return spark.createDataFrame(self.table(slice), schema)

    def rows(self, slice: Slice) -> int | None:
        return None

    def weight(self, slice: Slice) -> int:
        return 0

    def trim(self, slice: Slice) -> None:
        """Nothing is kept."""
