"""The messages that an epoch's changes become, in an order that is always the same. Pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Failed
from nosync.sinks.json_values import plain

Message = tuple[bytes | None, bytes | None]
"""Key and value."""


@dataclass(frozen=True, slots=True)
class Form:
    """What messages look like. `value`: the column that is the value, as it is; empty for a JSON object of all. `changes`: what a row was
    before and is now, instead of only what it is."""

    key: tuple[str, ...] = ()
    value: str = ""
    changes: bool = False


def messages(table: pa.Table, form: Form, what: str) -> Iterator[Message]:
    """One for each row that is added, in its place where it replaces another; and one for each that is gone: without a value."""
    columns = [field for field in table.schema if field.name not in (EPOCH, DIFF)]
    check(columns, form, what)
    rows, diffs = table.drop_columns([EPOCH, DIFF]).to_pylist(), table.column(DIFF).to_pylist()
    types = {field.name: field.type for field in columns}
    if not form.key:
        yield from _unkeyed(rows, diffs, types, form, what)
        return
    before: dict[bytes, dict[str, Any]] = {}
    after: dict[bytes, dict[str, Any]] = {}
    for row, diff in zip(rows, diffs, strict=True):
        key, side = _key(row, types, form), before if diff < 0 else after
        if key in side or abs(diff) > 1:
            words = f"{what}: key=[{', '.join(form.key)}] does not tell the rows of the query's result apart"
            raise Failed(words, hint="Name all columns that make a row its own.")
        side[key] = row
    for key in [*before, *(key for key in after if key not in before)]:
        yield key, _value(before.get(key), after.get(key), types, form)


def check(columns: Sequence[pa.Field], form: Form, what: str) -> None:
    names = [field.name for field in columns]
    for name in (*form.key, *filter(None, [form.value])):
        if name not in names:
            raise Failed(f'{what}: "{name}" is no column of the query', hint=f"They are {', '.join(names)}.")
    type = next((field.type for field in columns if field.name == form.value), None)
    if type is not None and not (pa.types.is_string(type) or pa.types.is_binary(type)):
        raise Failed(f'{what}: value="{form.value}" is {type}, not text or bytes', hint="Cast it, or leave value= out: it is JSON then.")


def _unkeyed(rows: list[dict[str, Any]], diffs: list[int], types: dict[str, pa.DataType], form: Form, what: str) -> Iterator[Message]:
    for row, diff in zip(rows, diffs, strict=True):
        if diff < 0 and not form.changes:
            hint = "Pass key=[...], or changes=True for messages that say what goes."
            raise Failed(f"{what}: the query's result loses rows, and there is no key to say which", hint=hint)
        value = _value(row, None, types, form) if diff < 0 else _value(None, row, types, form)
        yield from [(None, value)] * abs(diff)


def _key(row: dict[str, Any], types: dict[str, pa.DataType], form: Form) -> bytes:
    """The bytes of a text, or JSON."""
    if len(form.key) > 1:
        return _json({name: plain(row[name], types[name]) for name in form.key})
    found = row[form.key[0]]
    if isinstance(found, bytes):
        return found
    return found.encode() if isinstance(found, str) else _json(plain(found, types[form.key[0]]))


def _value(before: dict[str, Any] | None, after: dict[str, Any] | None, types: dict[str, pa.DataType], form: Form) -> bytes | None:
    if form.changes:
        op = "u" if before and after else "c" if after else "d"
        return _json({"op": op, "before": _row(before, types), "after": _row(after, types)})
    if after is None:
        return None
    if not form.value:
        return _json(_row(after, types))
    found = after[form.value]
    return found if found is None or isinstance(found, bytes) else str(found).encode()


def _row(row: dict[str, Any] | None, types: dict[str, pa.DataType]) -> dict[str, Any] | None:
    return None if row is None else {name: plain(value, types[name]) for name, value in row.items()}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
