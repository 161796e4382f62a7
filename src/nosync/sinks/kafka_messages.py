"""The messages that an epoch's changes become, in an order that is always the same. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Failed
from nosync.sinks.json_values import plain

ENCODED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Mode = Literal["changes", "append", "state"]
Message = tuple[bytes | None, bytes | None]
"""Key and value."""
WAYS = 'Pass key=[...], which makes it mode="state", or mode="changes" for messages that say what goes.'


@dataclass(frozen=True, slots=True)
class Form:
    """What messages look like. `value`: the column that is the value, as it is; empty for a JSON object of all. `mode`: what a row is now,
    by its key (`state`); what it was before and is now (`changes`); or rows that only come (`append`)."""

    key: tuple[str, ...] = ()
    value: str = ""
    mode: Mode = "append"


def messages(table: pa.Table, form: Form, what: str) -> Iterator[Message]:
    """One for each row that is added, in its place where it replaces another; and one for each that is gone: without a value."""
    columns = [field for field in table.schema if field.name not in (EPOCH, DIFF)]
    check(columns, form, what)
    diffs = table.column(DIFF).to_pylist()
    keys = _keys(table, form) if form.key else []
    if not keys or form.mode == "append":
        yield from _one_by_one(keys or [None] * len(diffs), _values(table, form), diffs, form, what)
        return
    before, after = (_places(keys, diffs, sign, form, what) for sign in (-1, 1))
    if form.mode == "changes":
        rows = _rows(table)
        for key in _in_order(before, after):
            yield key, _change(*(None if place is None else rows[place] for place in (before.get(key), after.get(key))))
        return
    added = table.take(pa.array(after.values(), pa.int64()))
    values = dict(zip(after, _values(added, form), strict=True))
    for key in _in_order(before, after):
        yield key, values.get(key)


def _places(keys: Sequence[bytes], diffs: Sequence[int], sign: int, form: Form, what: str) -> dict[bytes, int]:
    """Where the row of each key is, of those that are added or those that are removed."""
    found: dict[bytes, int] = {}
    for place, (key, diff) in enumerate(zip(keys, diffs, strict=True)):
        if diff * sign <= 0:
            continue
        if key in found or abs(diff) > 1:
            words = f"{what}: key=[{', '.join(form.key)}] does not tell the rows of the query's result apart"
            raise Failed(words, hint="Name all columns that make a row its own.")
        found[key] = place
    return found


def _in_order(before: Mapping[bytes, int], after: Mapping[bytes, int]) -> Iterator[bytes]:
    yield from before
    yield from (key for key in after if key not in before)


def check(columns: Sequence[pa.Field], form: Form, what: str) -> None:
    names = [field.name for field in columns]
    for name in (*form.key, *filter(None, [form.value])):
        if name not in names:
            raise Failed(f'{what}: "{name}" is no column of the query', hint=f"They are {', '.join(names)}.")
    type = next((field.type for field in columns if field.name == form.value), None)
    if type is not None and not (pa.types.is_string(type) or pa.types.is_binary(type)):
        raise Failed(f'{what}: value="{form.value}" is {type}, not text or bytes', hint="Cast it, or leave value= out: it is JSON then.")


def _one_by_one(
    keys: Sequence[bytes | None], values: Sequence[bytes | None], diffs: Sequence[int], form: Form, what: str
) -> Iterator[Message]:
    for key, value, diff in zip(keys, values, diffs, strict=True):
        if diff < 0 and form.mode != "changes":
            raise Failed(f"{what}: the query's result loses rows, and messages of rows that come cannot say which", hint=WAYS)
        yield from [(key, value)] * abs(diff)


def _keys(table: pa.Table, form: Form) -> list[bytes]:
    """The bytes of a text, or JSON."""
    if len(form.key) > 1:
        return [_json(row) for row in _rows(table, form.key)]
    column = table.column(form.key[0])
    texts = column.cast(pa.binary()) if pa.types.is_string(column.type) else column
    if pa.types.is_binary(texts.type):
        return [b"null" if found is None else found for found in texts.to_pylist()]
    return [_json(found) for found in _plain(column)]


def _values(table: pa.Table, form: Form) -> list[bytes | None]:
    """Of rows that are as they are now; of changes without a key, what each row does."""
    if form.mode == "changes":
        pairs = zip(_rows(table), table.column(DIFF).to_pylist(), strict=True)
        return [_change(row, None) if diff < 0 else _change(None, row) for row, diff in pairs]
    if form.value:
        column = table.column(form.value)
        return list((column.cast(pa.binary()) if pa.types.is_string(column.type) else column).to_pylist())
    return [_json(row) for row in _rows(table)]


def _rows(table: pa.Table, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """As JSON has them: all columns, or some."""
    wanted = names or [name for name in table.column_names if name not in (EPOCH, DIFF)]
    columns = [_plain(table.column(name)) for name in wanted]
    return [dict(zip(wanted, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    type, values = column.type, column.to_pylist()
    if pa.types.is_string(type) or pa.types.is_integer(type) or pa.types.is_boolean(type):
        return list(values)
    return [plain(value, type) for value in values]


def _change(before: dict[str, Any] | None, after: dict[str, Any] | None) -> bytes:
    op = "u" if before and after else "c" if after else "d"
    return _json({"op": op, "before": before, "after": after})


def _json(value: Any) -> bytes:
    return ENCODED(value).encode()
