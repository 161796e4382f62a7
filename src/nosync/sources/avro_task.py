"""Records of Avro in a task: messages to columns of Arrow, and of those that cannot be read the reason.

With a registry a message begins with a zero and the four bytes of its schema's number; without one it is a record of the reader's own
schema and nothing else. A worker keeps the schemas that it has asked for: numbers are given once.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import pyarrow as pa

from nosync.clients.registry import Registry, Written
from nosync.model.extras import needed
from nosync.sources.avro_types import EXTRA, WIDEST, Schema, bare, base_of, endless, expanded, fit_defaults, logical_of, unlike
from nosync.sources.rejection import NO_VALUE, UNREAD, WHY

HEAD = 5  # bytes: a zero and the schema's number
LOOKS, BETWEEN_SECONDS = 3, 0.5  # for a schema that the registry does not have yet: one that follows another is a little behind
Convert = Callable[[Any], Any]
FIRST_DAY, AFTER_DAY = -719_162, 2_932_897  # the first day of the year 1, and that of the year 10000, in days since 1970
MILLIS, MICROS = 86_400_000, 86_400_000_000
TIMES = {  # how many there are in a day, and by what they become those of Arrow
    "date": (1, 1), "timestamp-millis": (MILLIS, 1000), "timestamp-micros": (MICROS, 1), "local-timestamp-millis": (MILLIS, 1000),
    "local-timestamp-micros": (MICROS, 1),
}  # fmt: skip


@dataclass(frozen=True)
class AvroTask:
    """What a task needs to know: the reader's schema as text, and the columns that it becomes."""

    text: str
    columns: pa.Schema
    registry: Registry | None = None

    def __call__(self, values: Sequence[bytes | None]) -> tuple[list[pa.Array], list[str]]:
        """The columns, and the last two: what could not be read, in hexadecimal digits, and why."""
        return _reader(self)(values)


class Poison(Exception):
    """A message that cannot be read, and why."""


@dataclass(frozen=True, slots=True)
class Writer:
    """How messages of one writer are read. `reader`: None where that is the same. `wrong`: why none can be."""

    schema: Schema = None
    reader: Schema = None
    wrong: str = ""


_readers: dict[AvroTask, "Reader"] = {}


def _reader(task: AvroTask) -> "Reader":
    """That of the worker."""
    if task not in _readers:
        _readers[task] = Reader(task)
    return _readers[task]


class Reader:
    """Reads messages by the schema of each."""

    def __init__(self, task: AvroTask) -> None:
        self.task, schema = task, json.loads(task.text)
        self.decode = needed("fastavro", EXTRA, "Avro").schemaless_reader
        self.whole = expanded(schema)
        self.schema = _parsed([schema])
        self.converts = {field["name"]: _convert(field["type"]) for field in self.whole["fields"]}
        self.writers: dict[int, Writer] = {}

    def __call__(self, values: Sequence[bytes | None]) -> tuple[list[pa.Array], list[str]]:
        records, whys = zip(*map(self._read, values), strict=True)
        reasons = list(whys)
        arrays = [self._column(field, records, reasons) for field in self.task.columns]
        if any(reasons):  # whoever does not fit has none of its columns
            places = pa.array([None if why else place for place, why in enumerate(reasons)], pa.int64())
            arrays = [array.take(places) for array in arrays]
        raw = [None if not why else (value or b"").hex() for value, why in zip(values, reasons, strict=True)]
        why = pa.array([why or None for why in reasons], pa.string())
        return [*arrays, pa.array(raw, pa.string()), why], [*self.task.columns.names, UNREAD, WHY]

    def _read(self, value: bytes | None) -> tuple[dict[str, Any], str]:
        """The record, or why there is none."""
        try:
            if value is None:
                raise Poison(NO_VALUE)
            writer, start = (self._writer(value), HEAD) if self.task.registry is not None else (Writer(self.schema), 0)
            if writer.wrong:
                raise Poison(writer.wrong)
            return self._record(value, start, writer), ""
        except Poison as error:
            return {}, str(error)

    def _record(self, value: bytes, start: int, writer: Writer) -> dict[str, Any]:
        stream = BytesIO(value)
        stream.seek(start)
        try:
            record: dict[str, Any] = self.decode(stream, writer.schema, writer.reader)
            for name, convert in self.converts.items():
                if convert is not None and record[name] is not None:
                    record[name] = convert(record[name])
        except Exception as error:  # whatever bytes can lead to
            raise Poison(f"no record of the schema: {_words(error)}") from None
        if left := len(value) - stream.tell():
            raise Poison(f"no record of the schema: {left} bytes follow it")
        return record

    def _column(self, field: pa.Field, records: Sequence[dict[str, Any]], reasons: list[str]) -> pa.Array:
        """Values that have no place in the column reject their records."""
        values = [record.get(field.name) for record in records]
        try:
            return pa.array(values, field.type)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            pass
        for place, value in enumerate(values):
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                values[place], reasons[place] = None, reasons[place] or f"{field.name}: {_words(error)}"
        return pa.array(values, field.type)

    def _writer(self, value: bytes) -> Writer:
        if len(value) < HEAD or value[0]:
            raise Poison("it does not begin with the number of a schema")
        number = int.from_bytes(value[1:HEAD], "big")
        if number not in self.writers:
            self.writers[number] = self._asked(number)
        return self.writers[number]

    def _asked(self, number: int) -> Writer:
        assert self.task.registry is not None
        for look in range(LOOKS):
            if look:
                time.sleep(BETWEEN_SECONDS)
            if (found := self.task.registry.schema(number)) is not None:
                return self._resolved(f"schema {number}", found)
        return Writer(wrong=f"the registry has no schema {number}")

    def _resolved(self, what: str, found: Written) -> Writer:
        if found.kind != "AVRO":
            return Writer(wrong=f"{what} is one of {found.kind}, not of Avro")
        try:
            schemas = [json.loads(text) for text in (*found.before, found.text)]
            whole = _parsed(schemas, expand=True)
            if wrong := endless(whole):
                return Writer(wrong=f"{what} {wrong}")
            if wrong := unlike(whole, self.whole):
                return Writer(wrong=f"{what} does not fit: {wrong}")
            plain = bare(whole)
            return Writer(_parsed(schemas), None if plain == bare(self.whole) else self.schema)
        except Exception as error:
            return Writer(wrong=f"{what} is none of Avro: {_words(error)}")


def _parsed(schemas: Sequence[Schema], expand: bool = False) -> Schema:
    """The last of the schemas, which may name types of those before. Expanded, or ready to read by: without logical types then."""
    parse = needed("fastavro.schema", EXTRA, "Avro").parse_schema
    named: dict[str, Schema] = {}
    for schema in schemas:
        found = parse(schema if expand else bare(schema), named_schemas=named, expand=expand, _write_hint=not expand)
    if not expand:
        fit_defaults(found, named)
    return found


def _convert(schema: Schema) -> Convert | None:
    """What makes a value that was decoded without logical types one that Arrow takes; None where it is one already."""
    if isinstance(schema, list):
        return _convert(next(branch for branch in schema if branch != "null"))
    base, logical = base_of(schema), logical_of(schema)
    if base == "record":
        inner = {field["name"]: convert for field in schema["fields"] if (convert := _convert(field["type"])) is not None}
        return _of_record(inner) if inner else None
    if base in ("array", "map"):
        item = _convert(schema["items" if base == "array" else "values"])
        return None if item is None else _of_items(item) if base == "array" else _of_values(item)
    if logical == "decimal":
        return _decimal(schema.get("scale", 0))
    if logical in TIMES:
        return _time(*TIMES[logical])
    return (lambda value: str(UUID(bytes=value))) if (base, logical) == ("fixed", "uuid") else None


def _of_record(inner: dict[str, Convert]) -> Convert:
    def convert(record: dict[str, Any]) -> dict[str, Any]:
        return {name: inner[name](value) if name in inner and value is not None else value for name, value in record.items()}

    return convert


def _of_items(item: Convert) -> Convert:
    return lambda values: [None if value is None else item(value) for value in values]


def _of_values(item: Convert) -> Convert:
    return lambda values: {name: None if value is None else item(value) for name, value in values.items()}


def _time(a_day: int, factor: int) -> Convert:
    """Times of Spark are those of the years 1 to 9999: what lies outside could not be shown to anybody."""

    def convert(value: int) -> int:
        if not FIRST_DAY * a_day <= value < AFTER_DAY * a_day:
            raise ValueError(f"{value} is no time of the years 1 to 9999")
        return value * factor

    return convert


def _decimal(scale: int) -> Convert:
    exact = Context(prec=4 * WIDEST)
    return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, exact)


def _words(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return (text or {"EOFError": "it ends too early"}.get(type(error).__name__, type(error).__name__))[:200]
