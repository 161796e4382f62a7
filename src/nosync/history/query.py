"""SQL over the views of a home, without Spark: DuckDB reads them as Arrow."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from nosync.model.errors import Invalid
from nosync.model.extras import needed


def answer(statement: str, views: Iterable[str], view: Callable[[str], pa.Table]) -> pa.Table:
    """The statement's result. Only views whose names stand in it are read."""
    database = _connected()
    try:
        for name in (name for name in views if _mentions(statement, name)):
            database.register(name, view(name))
        found = database.sql(statement)
        return pa.table({}) if found is None else found.to_arrow_table()
    except _duckdb().Error as error:
        known = ", ".join(f'"{name}"' if "." in name else name for name in views)
        raise Invalid(f"the statement is not valid: {str(error).splitlines()[0]}", hint=f"There are: {known or 'no views'}.") from None
    finally:
        database.close()


def _mentions(statement: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", statement, re.IGNORECASE) is not None


def _connected() -> Any:
    """A database in memory that reads no file and asks no network: only the views are there."""
    return _duckdb().connect(":memory:", config={"enable_external_access": "false", "python_enable_replacements": "false"})


def _duckdb() -> Any:
    return needed("duckdb", "sql", "SQL without Spark")
