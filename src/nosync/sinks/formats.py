"""How rows stand in a file: Parquet, JSON by lines, or CSV with a header. The same rows always give the same bytes."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from nosync.model.errors import reading

Batches = Iterable[pa.RecordBatch]
Write = Callable[[Path, pa.Schema, Batches], None]


def parquet_file(path: Path, schema: pa.Schema, batches: Batches) -> None:
    with pq.ParquetWriter(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def rows_in(path: Path) -> pa.Table:
    """The rows of a Parquet file that was written before; `Corrupt` where somebody has changed it."""
    with _taking_apart(path), path.open("rb") as file:
        table = pq.read_table(file, partitioning=None)
        table.validate(full=True)
    return table


def row_count(path: Path) -> int:
    with _taking_apart(path), path.open("rb") as file:
        return int(pq.read_metadata(file).num_rows)


@contextmanager
def _taking_apart(path: Path) -> Iterator[None]:
    with reading(f'"{path}"', "Restore it, or write to another folder."):
        try:
            yield
        except OSError as error:  # without a number: Arrow's word for a file that is damaged
            raise error if error.errno is not None else ValueError(str(error)) from None


def csv_file(path: Path, schema: pa.Schema, batches: Batches) -> None:
    """Texts are quoted, null is nothing at all: an empty text can be told from it."""
    with pa_csv.CSVWriter(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def json_file(path: Path, schema: pa.Schema, batches: Batches) -> None:
    """One object a line, null fields left out, as Spark writes and reads them."""
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            for row in batch.to_pylist():
                file.write(json.dumps(_plain(row), ensure_ascii=False, separators=(",", ":")) + "\n")


def _plain(value: Any) -> Any:
    """The value in terms that JSON has."""
    match value:
        case Mapping():
            return {str(name): _plain(item) for name, item in value.items() if item is not None}
        case list() | tuple():
            return [_plain(item) for item in value]
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return float(value) if value == Decimal(str(float(value))) else str(value)
        case timedelta():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


WRITERS: dict[str, Write] = {"parquet": parquet_file, "json": json_file, "csv": csv_file}


def flat(kind: pa.DataType) -> bool:
    """Whether a value of the type has a place in CSV."""
    return not pa.types.is_nested(kind)
