"""The rows of a view as somebody asked to see them: some of them, some columns, in an order; and how they are printed or written."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from nosync.cli.output import arrow_grid, console, json_of, print_json
from nosync.model.arguments import did_you_mean
from nosync.model.errors import Invalid
from nosync.model.extras import needed


def distinct_names(table: pa.Table) -> pa.Table:
    """The same column twice is not lost where a name stands for a column."""
    met = Counter[str]()
    names = []
    for name in table.column_names:
        met[name] += 1
        names.append(name if met[name] == 1 else f"{name}_{met[name]}")
    return table.rename_columns(names)


def where(table: pa.Table, condition: str) -> pa.Table:
    """The rows that satisfy a condition in SQL. It sees nothing but them: no files, no other tables."""
    duckdb = needed("duckdb", "sql", "--where")
    with duckdb.connect() as engine:
        engine.execute("set enable_external_access = false")
        engine.execute("set TimeZone = 'UTC'")
        engine.register("rows", table)
        try:
            found: pa.Table = engine.sql(f"select * from rows where {condition}").to_arrow_table()
        except duckdb.Error as error:
            words = str(error).strip().splitlines()[0]
            raise Invalid(f"--where is not valid: {words}", hint=f"The columns are: {', '.join(table.column_names)}.") from None
    return found.cast(table.schema)


def sorted_by(table: pa.Table, said: Sequence[str]) -> pa.Table:
    """By columns, each with " desc" or a minus in front for the other way round; nulls last."""
    keys = []
    for one in said:
        name = one.removeprefix("-").strip()
        down = one.startswith("-") or name.lower().endswith(" desc")
        name = name[: -len(" desc")].strip() if name.lower().endswith(" desc") else name.removesuffix(" asc")
        keys.append((_known(table, name), "descending" if down else "ascending"))
    return table.sort_by(keys) if keys else table


def only(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    return table.select([_known(table, name) for name in columns]) if columns else table


def _known(table: pa.Table, name: str) -> str:
    if name not in table.column_names:
        hint = f"{did_you_mean(name, table.column_names)}The columns are: {', '.join(table.column_names)}."
        raise Invalid(f'there is no column "{name}"', hint=hint)
    return name


def printed(table: pa.Table, format: str, target: Path | None, facts: dict[str, Any]) -> None:
    """On stdout, or into a file. `facts` go with JSON."""
    if format == "table" and target is None:
        console().print(arrow_grid(table))
    elif format == "json" and target is None:
        print_json({**facts, "rows": table.to_pylist()})
    else:
        _written(table, format, target, facts)


def _written(table: pa.Table, format: str, target: Path | None, facts: dict[str, Any]) -> None:
    if format == "parquet" and target is None and sys.stdout.isatty():
        raise Invalid("Parquet is nothing to look at", hint="Name a file, --output FILE, or pipe it into a program.")
    sink: Any = sys.stdout.buffer if target is None else str(target)
    try:
        match format:
            case "parquet":
                pq.write_table(table, sink)
            case "csv":
                pa_csv.write_csv(_flat(table), sink)
            case _:
                raise Invalid(f"--output takes csv or parquet, not {format}", hint="Pass --format csv or parquet.")
    except BrokenPipeError:  # whoever reads has seen enough: the command ends as others do
        raise
    except OSError as error:
        raise Invalid(f'"{target}" cannot be written: {error.strerror or error}', hint="Name another file.") from None


def _flat(table: pa.Table) -> pa.Table:
    """Values with parts as JSON, which CSV has no other place for."""
    columns = [_as_json(column) if pa.types.is_nested(column.type) else column for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _as_json(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else json_of(value) for value in column.to_pylist()], pa.string())


def differences(before: pa.Table | None, now: pa.Table) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What came ("+") and went ("-") between two looks, each row as often as it did."""
    old, new = (Counter(map(repr, _tuples(table))) if table is not None else Counter[str]() for table in (before, now))
    for sign, table, less, more in (("-", before, new, old), ("+", now, old, new)):
        left = more - less
        for row in _tuples(table) if table is not None else ():
            if left[repr(row)] > 0:
                left[repr(row)] -= 1
                yield sign, row


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns))) if table.num_columns else []

