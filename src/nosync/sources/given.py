"""Rows as programs give them: what numpy and pandas make of values, and what would be changed in silence."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from pyspark.sql.types import ArrayType, DataType, IntegralType, StructType

from nosync.model.errors import Invalid

TABLES = ("pandas", "polars", "pyarrow")


def rows_in(called: str, given: Iterable[Any]) -> list[Any]:
    """The rows of a list or any other iterable; a table, or one row alone, is not taken for one."""
    if isinstance(given, str | bytes | Mapping):
        raise Invalid(f"{called} was given a {type(given).__name__}, not rows", hint='Pass a list of tuples or dicts, as [("a", 1)].')
    library = _library(given)
    if library in TABLES:
        way_out = {"pandas": 'df.to_dict("records")', "polars": "df.rows()", "pyarrow": "table.to_pylist()"}[library]
        raise Invalid(f"{called} was given a {library} {type(given).__name__}, not rows", hint=f"Pass {way_out}.")
    return list(given)


def plain(row: Any) -> Any:
    """The row with Python's own values."""
    if isinstance(row, dict):
        return {name: _plain(value) for name, value in row.items()}
    if type(row) in (tuple, list):
        return type(row)(map(_plain, row))
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime) and _library(value) == "pandas":
        at: Any = value
        return at.to_pydatetime()
    return value


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def would_lose(value: Any, type: DataType) -> bool:
    """Whether a whole number is wanted, and this has a part that would be cut off."""
    if isinstance(type, IntegralType):
        return isinstance(value, float | Decimal) and not isinstance(value, Integral) and value != value // 1
    if isinstance(type, ArrayType):
        return isinstance(value, list | tuple) and any(would_lose(one, type.elementType) for one in value)
    if isinstance(type, StructType) and isinstance(value, list | tuple) and len(value) == len(type.fields):
        return any(would_lose(one, field.dataType) for one, field in zip(value, type.fields, strict=True))
    return False
