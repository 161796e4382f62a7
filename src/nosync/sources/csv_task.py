"""CSV read in tasks by Arrow, as a DataFrame: plain lines as rows, odd ones by Spark's own parser in the same plan.

What comes out is what `spark.read.csv` gives, row by row and reject by reject; only faster, since hardly any file has an odd line.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.model.errors import Unreadable
from nosync.model.quoting import quoted
from nosync.sources.location import PACKED
from nosync.sources.plain_csv import PlainCsv, is_known, lines
from nosync.sources.rejection import UNREAD

BLOCK = 4 << 20
SMALLEST, LARGEST = 1 << 20, 32 << 20  # of the bytes of a task
LINE = "_nosync_line"
PARSED = "_nosync_parsed"
PACKED_TOO = (*PACKED, ".deflate", ".gzip")
KNOWN_OPTIONS = ("header", "sep", "delimiter")


class Range(NamedTuple):
    """Lines that begin at these bytes of a file."""

    path: str
    start: int
    end: int


def plain_csv(spark: SparkSession, schema: StructType, options: Mapping[str, Any]) -> PlainCsv | None:
    """How lines look that Arrow can read; None where Spark has to read them all."""
    asked = {name.lower(): value for name, value in options.items()}
    separator = str(asked.get("sep", asked.get("delimiter", ",")))
    types = tuple(arrow_schema(schema, "the source").types)
    header = str(asked.get("header", False)).lower()
    if not set(asked) <= set(KNOWN_OPTIONS) or len(asked) != len(options) or {"sep", "delimiter"} <= set(asked):
        return None
    if len(separator) != 1 or not ((separator.isascii() and separator.isprintable()) or separator == "\t") or separator in " \"\\'#":
        return None
    if header not in ("true", "false") or not types or not all(map(is_known, types)) or separator.isalnum() or separator in "+-.:":
        return None
    if str(spark.conf.get("spark.sql.legacy.timeParserPolicy")).upper() == "LEGACY":
        return None
    return PlainCsv(types, separator, header == "true", str(spark.conf.get("spark.sql.session.timeZone")))


def is_text(path: str) -> bool:
    """Whether Spark reads the bytes as they are."""
    return not path.lower().endswith(PACKED_TOO)


def csv_frame(spark: SparkSession, paths: Sequence[str], plain: PlainCsv, schema: StructType, smallest: int = SMALLEST) -> DataFrame:
    """The rows with the columns of the schema, and in `UNREAD` the lines that do not fit it."""
    tasks = shared_out([Range(path, 0, os.path.getsize(path)) for path in paths], spark.sparkContext.defaultParallelism, smallest)
    fields = [StructField(f"c{i}", field.dataType) for i, field in enumerate(schema.fields)]
    found = StructType([*fields]).add(LINE, "string")
    rows = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(CsvTask(tuple(tasks), plain), found)
    wanted = StructType([*fields]).add(UNREAD, "string").toDDL()
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{UNREAD}', 'sep', '{plain.separator}')"
    rows = rows.selectExpr("*", f"case when {LINE} is not null then from_csv({LINE}, '{wanted}', {options}) end as {PARSED}")
    columns = [f"if({LINE} is null, c{i}, {PARSED}.c{i}) as {quoted(field.name)}" for i, field in enumerate(schema.fields)]
    return rows.selectExpr(*columns, f"{PARSED}.{UNREAD} as {UNREAD}")


def content_of(path: str) -> bytes:
    """All of a file. One that cannot be read is said by its name."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Unreadable(f'file "{path}" cannot be read: {error.strerror or error}') from error


def shared_out(ranges: Sequence[Range], cores: int, smallest: int) -> list[tuple[Range, ...]]:
    """What each task reads: about the same number of bytes."""
    total = sum(found.end for found in ranges)
    most = max(smallest, min(LARGEST, -(-total // cores)))
    tasks: list[tuple[Range, ...]] = []
    now: list[Range] = []
    room = most
    for path, _, size in ranges:
        at = 0
        while at < size:
            end = min(size, at + room)
            now.append(Range(path, at, end))
            room -= end - at
            at = end
            if room <= 0:
                tasks.append(tuple(now))
                now, room = [], most
    return [*tasks, tuple(now)] if now or not tasks else tasks


@dataclass(frozen=True)
class CsvTask:
    """Reads the ranges whose numbers it is given."""

    tasks: tuple[tuple[Range, ...], ...]
    plain: PlainCsv

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for wanted in self.tasks[number]:
                    yield from self._rows(wanted)

    def _rows(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Where most of a block is odd, those after it are not even tried."""
        hopeless = False
        for block in self._blocks(wanted):
            odd = 0
            for part in [lines(block)] if hopeless else self.plain.parts(block):
                if isinstance(part, list):
                    odd += sum(map(len, part))
                yield self._emitted(part)
            hopeless = hopeless or odd * 2 > len(block)

    def _blocks(self, wanted: Range) -> Iterator[bytes]:
        """Whole lines whose first bytes lie in the range."""
        try:
            with open(wanted.path, "rb") as file:
                if wanted.start:
                    file.seek(wanted.start - 1)
                    file.readline()
                at = file.tell()
                while at < wanted.end and (block := file.read(min(BLOCK, wanted.end - at))):
                    if not block.endswith(b"\n"):
                        block += file.readline()
                    yield block if at else self.plain.beginning(block)
                    at = file.tell()
        except OSError as error:
            raise Unreadable(f'file "{wanted.path}" cannot be read: {error.strerror or error}') from error

    def _emitted(self, part: pa.RecordBatch | list[bytes]) -> pa.RecordBatch:
        schema = self.plain.schema.append(pa.field(LINE, pa.string()))
        if isinstance(part, list):
            text = pa.array(part, pa.binary()).view(pa.string())
            return pa.RecordBatch.from_arrays([*(pa.nulls(len(part), type) for type in self.plain.types), text], schema=schema)
        return pa.RecordBatch.from_arrays([*part.columns, pa.nulls(part.num_rows, pa.string())], schema=schema)
