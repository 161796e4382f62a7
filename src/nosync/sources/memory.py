"""Rows given by the program itself, for tests and notebooks.

What was given since the last epoch is one epoch. It cannot be had again: the flow keeps a log of it (see `input_log`), and rows are
forgotten here only once they are recorded there.
"""

import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.types import LongType, StructField, StructType

from nosync.bridge.frames import declared_schema
from nosync.model.absent import connector
from nosync.model.arguments import checked, did_you_mean
from nosync.model.columns import DIFF
from nosync.model.errors import Invalid
from nosync.model.source import Slice, Taken
from nosync.sources.given import plain, rows_in, would_lose


@checked()
def memory(schema: str | StructType, removals: bool = False) -> "Memory":
    """A source with `.add(rows)`, and with `removals` also `.remove(rows)`; rows are tuples, dicts or Rows, as for
    `spark.createDataFrame`.

    With a key (`flow.source(..., key=)`) adding replaces, and removing looks at the key alone. Rows that may be removed are counted by the
    flow, so that nothing is removed that is not there: that keeps them once more.

    >>> events = ns.memory("user string, at timestamp")
    >>> rows = flow.source("events", events)
    >>> events.add([("ann", None), {"user": "bob"}])
    >>> events
    ns.memory("user string, at timestamp"), 2 rows waiting
    """
    return Memory(schema, append_only=not removals)


@connector("source", "memory")
@dataclass(eq=False)
class Memory:
    """See `memory`. A slice is a number of this very object's; `unrecorded` has the rows of those that no epoch has for certain."""

    given: str | StructType
    append_only: bool = True
    pending: list[tuple[list[Any], int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    handed_out: int = 0
    unrecorded: dict[int, pa.Table] = field(default_factory=dict)
    schema: StructType = field(default_factory=StructType, repr=False)  # known from its declaration on
    _wake: Callable[[], None] = field(default=lambda: None, repr=False)

    def __repr__(self) -> str:
        waiting = sum(len(rows) for rows, _ in self.pending)
        given = self.given if isinstance(self.given, str) else self.given.simpleString()
        return f'ns.memory("{given}"){f", {waiting} rows waiting" if waiting else ""}'

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name = name
        try:
            self.schema = declared_schema(self.given)
        except PySparkException as error:
            words = str(error).strip().splitlines()[0]
            raise Invalid(f'source "{name}": the schema "{self.given}" cannot be read: {words}', hint='Write "column type, ...".') from None
        twice = next((one for one in self.schema.names if self.schema.names.count(one) > 1), None)
        if twice is not None:
            raise Invalid(f'source "{name}": its schema has the column "{twice}" twice', hint="Give each column a name of its own.")
        if not self.schema.fields:
            raise Invalid(f'source "{name}": its schema has no columns', hint='Write "column type, ...".')
        return self.schema

    @checked()
    def add(self, rows: Iterable[Any]) -> None:
        """These rows belong to the collection from the next epoch on.

        >>> events = ns.memory("user string, price double")
        >>> rows = flow.source("events", events)
        >>> events.add([("ann", 3.5), {"user": "bob"}])
        """
        self._give(rows_in("memory.add", rows), 1)

    @checked()
    def remove(self, rows: Iterable[Any]) -> None:
        """These rows leave the collection with the next epoch. Those that are not there go to `<source>.rejected`.

        >>> events = ns.memory("user string", removals=True)
        >>> rows = flow.source("events", events)
        >>> events.add([("ann",), ("bob",)])
        >>> events.remove([("ann",)])
        """
        gone = rows_in("memory.remove", rows)
        if gone and self.append_only:
            raise Invalid("the memory source only adds rows", hint="Declare it with ns.memory(..., removals=True).")
        self._give(gone, -1)

    def _give(self, rows: list[Any], diff: int) -> None:
        if not self.schema.fields:
            raise Invalid("the memory source is not part of a flow yet", hint="Pass it to flow.source(...) first.")
        if not rows:
            return
        rows = [plain(row) for row in rows]
        self._check_rows(rows)
        self._table(rows, diff)  # wrong rows are the giver's error, at once
        with self.lock:
            self.pending.append((rows, diff))
        self._wake()

    def _check_rows(self, rows: list[Any]) -> None:
        """A row that is no row is told from one whose values do not fit."""
        for row in rows:
            if not isinstance(row, tuple | list | dict):
                words = f'source "{self.name}": the row {row!r} is a {type(row).__name__}'
                raise Invalid(words, hint=f'Give a list of tuples or dicts, as [("a", 1)]: rows are {self.schema.simpleString()}.')
            unknown = [name for name in row if name not in self.schema.names] if isinstance(row, dict) else []
            if unknown:
                words = f'source "{self.name}": the row {row!r} has a "{unknown[0]}", which is no column'
                raise Invalid(words, hint=f"{did_you_mean(str(unknown[0]), self.schema.names)}Rows are {self.schema.simpleString()}.")
            if not isinstance(row, dict) and len(row) != len(self.schema):
                words = f'source "{self.name}": the row {row!r} has {len(row)} values, not {len(self.schema)}'
                raise Invalid(words, hint=f"Rows are {self.schema.simpleString()}.")
            for column, value in zip(self.schema.fields, self._values(row), strict=True):
                if would_lose(value, column.dataType):
                    words = f'source "{self.name}": {column.name}={value!r} is no {column.dataType.simpleString()}'
                    raise Invalid(words, hint=f"Rows are {self.schema.simpleString()}.")

    def _table(self, rows: list[Any], diff: int) -> pa.Table:
        try:
            table = LocalDataToArrowConversion.convert(rows, self.schema, False)
        except (PySparkException, pa.ArrowException, TypeError, ValueError, LookupError, AssertionError) as error:
            raise self._unfit(rows, error) from None
        return table.append_column(DIFF, pa.array([diff] * len(rows), pa.int64()))

    def _unfit(self, rows: list[Any], error: Exception) -> Invalid:
        """Which of the rows it is, where there are several."""
        words = next(iter(str(error).strip().splitlines()), "a value is of another type")
        for row in rows if len(rows) > 1 else ():
            try:
                self._table([row], 1)
            except Invalid as found:
                return found
        if len(rows) > 1:
            return Invalid(f'source "{self.name}": {words}', hint=f"Rows are {self.schema.simpleString()}.")
        wrong = [said for said in map(self._unfit_value, self.schema.fields, self._values(rows[0])) if said]
        words = f'source "{self.name}": the row {rows[0]!r} does not fit the schema: {wrong[0] if wrong else words}'
        return Invalid(words, hint=f"Rows are {self.schema.simpleString()}.")

    def _values(self, row: Any) -> list[Any]:
        return [row.get(name) for name in self.schema.names] if isinstance(row, dict) else list(row)

    def _unfit_value(self, column: StructField, value: Any) -> str:
        """Empty where the value fits."""
        try:
            LocalDataToArrowConversion.convert([(value,)], StructType([column]), False)
        except (PySparkException, pa.ArrowException, TypeError, ValueError, LookupError, AssertionError):
            return f"{column.name}={value!r} is no {column.dataType.simpleString()}"
        return ""

    def start(self, folder: Path, taken: Taken) -> None:
        """What was given before and is not part of an epoch stays: it is handed out again."""
        recorded = taken.latest["number"] if taken.latest is not None and taken.latest["of"] == self.id else 0
        self.unrecorded = {number: table for number, table in self.unrecorded.items() if number > recorded}
        self.handed_out = min(self.unrecorded, default=self.handed_out + 1) - 1

    def on_arrival(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def available(self) -> Slice | None:
        with self.lock:
            if self.handed_out + 1 not in self.unrecorded and not self._gather():
                return None
            self.handed_out += 1
            return {"of": self.id, "number": self.handed_out}

    def _gather(self) -> bool:
        """What is pending becomes one slice, if there is any."""
        tables = [self._table(rows, diff) for rows, diff in self.pending if rows]
        self.pending = []
        if tables:
            self.unrecorded[self.handed_out + 1] = pa.concat_tables(tables).combine_chunks()
        return bool(tables)

    def table(self, slice: Slice) -> pa.Table:
        return self.unrecorded[slice["number"]]

    def acknowledge(self, slice: Slice) -> None:
        if slice["of"] == self.id:
            self.unrecorded.pop(slice["number"], None)

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        schema = StructType(list(self.schema.fields)).add(DIFF, LongType())
        return spark.createDataFrame(self.table(slice), schema)
