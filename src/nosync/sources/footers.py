"""What the footer of a Parquet file says: how many rows, whether anybody reads the same values from it, and what is wrong with it.

A file is wrong that is no Parquet, that lacks a declared column, or has one of another sort: no reader could make the one of the other.
That does not depend on which columns a query asks for. What only reading shows is found when it is read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as t

from nosync.model.errors import Unavailable

MISSING = "column {} is missing (with mergeSchema=True it is read as null)"


@dataclass(frozen=True, slots=True)
class Footer:
    """`plain`: it holds the declared columns in just the declared types. `wrong`: why it cannot be read; empty where it can."""

    rows: int = 0
    plain: bool = False
    wrong: str = ""


def footer_of(path: Path, expected: pa.Schema, dispensable: Callable[[str], bool] = lambda name: False) -> Footer | None:
    """None for a file that is gone. A file that cannot be read now, though it may be later, is `Unavailable`. Columns that are
    `dispensable` may be missing.
    """
    try:
        with path.open("rb") as file:
            found = pq.read_metadata(file)
            schema = found.schema.to_arrow_schema()
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            words = f'file "{path}" cannot be read: {error.strerror or error}'
            raise Unavailable(words, hint="Restore access: it is tried again.") from error
        return Footer(wrong=f"not a Parquet file: {str(error).splitlines()[0]}")
    except Exception as error:  # of a type that Arrow does not know; Spark may
        return Footer(wrong=f"its schema cannot be read: {str(error).splitlines()[0]}")
    there = {name.lower() for name in schema.names}
    wrong = [MISSING.format(field.name) for field in expected if field.name.lower() not in there and not dispensable(field.name)]
    wrong += [_mismatch(schema, field) for field in expected]
    return Footer(found.num_rows, _is_plain(schema, expected), "; ".join(filter(None, wrong)))


def _is_plain(schema: pa.Schema, expected: pa.Schema) -> bool:
    if any(key.startswith(b"org.apache.spark.legacy") for key in schema.metadata or {}):
        return False
    return all(schema.get_all_field_indices(field.name) and schema.field(field.name).type == field.type for field in expected)


def _mismatch(schema: pa.Schema, declared: pa.Field) -> str:
    """Why the declared column cannot be read; empty where it can, or where it is not there."""
    if len(schema.get_all_field_indices(declared.name)) != 1:
        return ""
    found = schema.field(declared.name).type
    if found == declared.type or (_sort(found) == _sort(declared.type) and not _narrower(found, declared.type)):
        return ""
    if t.is_null(found) or (t.is_integer(found) and (t.is_floating(declared.type) or t.is_decimal(declared.type))):
        return ""
    return f"{declared.name} is {found}, not {declared.type}"


def _sort(type: pa.DataType) -> str:
    """Types between which a reader may convert."""
    if t.is_dictionary(type):
        return _sort(type.value_type)
    sorts = {
        "integer": t.is_integer, "float": t.is_floating, "decimal": t.is_decimal, "boolean": t.is_boolean, "time": t.is_temporal,
        "bytes": lambda type: t.is_string(type) or t.is_large_string(type) or t.is_binary(type) or t.is_large_binary(type)
        or t.is_fixed_size_binary(type),
        "struct": t.is_struct, "map": t.is_map, "list": lambda type: t.is_list(type) or t.is_large_list(type),
    }  # fmt: skip
    return next((name for name, fits in sorts.items() if fits(type)), str(type))


def _narrower(found: pa.DataType, declared: pa.DataType) -> bool:
    """Whether numbers of the file may not fit: 64 bits into fewer."""
    numbers = (t.is_integer(found) or t.is_floating(found)) and (t.is_integer(declared) or t.is_floating(declared))
    return bool(numbers and found.bit_width == 64 and declared.bit_width < 64)
