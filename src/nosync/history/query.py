"""SQL over the views of a home, without Spark: DuckDB reads them as Arrow."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from nosync.model.errors import Invalid
from nosync.model.extras import needed

DOING = re.compile(r"\s*(insert|update|delete|merge|truncate|drop|alter)\b", re.IGNORECASE)
UNKNOWN_COLUMN = re.compile(r'Referenced column "|does not have a column named')
UNKNOWN_FUNCTION = re.compile(r"Function with name .* does not exist")


def answer(statement: str, views: Iterable[str], view: Callable[[str], pa.Table]) -> pa.Table:
    """The statement's result. Only views whose names stand in it are read."""
    if (doing := DOING.match(statement)) is not None:
        words = f'"{doing[1].lower()}" is no query: what is read here is not written'
        raise Invalid(words, hint='Write "select ...". Rows come in through the sources of the flow.')
    database, columns = _connected(), dict[str, list[str]]()
    try:
        for name in (name for name in views if _mentions(statement, name)):
            rows = view(name)
            columns[name] = rows.column_names
            database.register(name, rows)
        found = database.sql(statement)
        return pa.table({}) if found is None else found.to_arrow_table()
    except _duckdb().Error as error:
        words = str(error).splitlines()[0]
        raise Invalid(f"the statement is not valid: {words}", hint=_hint(words, views, columns)) from None
    finally:
        database.close()


def _hint(words: str, views: Iterable[str], columns: Mapping[str, list[str]]) -> str:
    """What there is of what was not found."""
    if UNKNOWN_COLUMN.search(words) and columns:
        return " ".join(f"The columns of {_named(name)} are: {', '.join(found)}." for name, found in columns.items())
    if UNKNOWN_FUNCTION.search(words):
        return "The functions are those of DuckDB, which are not all called as Spark's."
    return f"There are: {', '.join(map(_named, views)) or 'no views'}."


def _named(view: str) -> str:
    return f'"{view}"' if "." in view else view


def _mentions(statement: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", statement, re.IGNORECASE) is not None


def _connected() -> Any:
    """A database in memory that reads no file and asks no network: only the views are there."""
    return _duckdb().connect(":memory:", config={"enable_external_access": "false", "python_enable_replacements": "false"})


def _duckdb() -> Any:
    return needed("duckdb", "sql", "SQL without Spark")
