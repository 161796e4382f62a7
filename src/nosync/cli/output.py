"""How answers look: tables for people, JSON for programs.

Data is shown as it is but can do no harm: control characters are spelled out, and nothing in it is taken for markup.
"""

import base64
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import click
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nosync.model.errors import NosyncError
from nosync.model.sizes import size as size
from nosync.observe.text import visible as visible

NAMED = 5  # of a long list
AS_OPTIONS = {r'\bon_change="(\w+)"': r"--on-change \1", r"\bflow\.explain\(home=\.\.\.\)": "`nosync explain FLOW.py HOME`"}
WIDE = 4000  # columns, where no terminal sets a width: what is piped is not cut


def console() -> Console:
    """Where tables go; made anew for each command, so that it writes to the stdout of the moment."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDE)


def cell(value: Any) -> Text:
    """A value as people read it; null differs from the word."""
    if value is None:
        return Text("null", style="dim")
    return Text(visible(words_of(value)))


def words_of(value: Any) -> str:
    """A value as people write it: times without a T, a window as from and to, a structure by its names."""
    match value:
        case str():
            return value
        case datetime():
            return _time(value)
        case {"start": datetime() as start, "end": datetime() as end, **rest} if not rest:
            return f"{_time(start)} to {_time(end)}"
        case Mapping():
            return "{" + ", ".join(f"{name}: {words_of(item)}" for name, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(words_of, value)) + "]"
        case None:
            return "null"
        case _:
            return str(plain(value))


def _time(value: datetime) -> str:
    """To the microsecond where there are any; the zone where it is not that of the reader's table."""
    return value.replace(tzinfo=None).isoformat(" ", "microseconds" if value.microsecond else "seconds")


def text_of(error: NosyncError) -> str:
    """The message and the hint below it. What follows the first line of a message, such as the trace of a function of the user's, is
    indented: nothing that an error quotes passes for a line of ours, or moves the cursor.
    """
    first, *more = error.message.split("\n")
    return "\n".join(map(visible, [first, *(f"  {line}" for line in more), *error.hint.splitlines()]))


def as_options(words: str) -> str:
    """An error that says what to pass in Python, for whoever runs the program from a shell."""
    for said, option in AS_OPTIONS.items():
        words = re.sub(said, option, words)
    return words


def grid(headers: Sequence[str], rows: Iterable[Sequence[Any]], numeric: Sequence[bool] = ()) -> Table:
    """A table with a header; columns marked numeric are flush right."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for index, header in enumerate(headers):
        right = index < len(numeric) and numeric[index]
        table.add_column(Text(visible(header)), justify="right" if right else "left")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    return table


def arrow_grid(rows: pa.Table) -> Table:
    """The rows of an Arrow table, numbers flush right."""
    numeric = [_is_number(field.type) for field in rows.schema]
    columns = [column.to_pylist() for column in rows.columns]
    return grid(rows.column_names, zip(*columns), numeric)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def plain(value: Any) -> Any:
    """The value in terms JSON has: decimals as exact text, times in ISO 8601, bytes in base64, NaN and infinities by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal | timedelta):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def listed(names: Sequence[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def json_of(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, default=str)


def print_json(value: Any) -> None:
    """One JSON document on one line."""
    text = json_of(value)
    click.echo(text.encode(errors="backslashreplace").decode())  # half a surrogate is no character, but JSON has a word for it
