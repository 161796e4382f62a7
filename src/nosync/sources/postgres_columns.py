"""Columns of PostgreSQL in Spark's types, and their texts as Arrow's values: the same for the first snapshot and for changes.

A type that Spark has not, or has with another range, comes as the text that PostgreSQL writes: nothing is rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from nosync.bridge.arrow import arrow_type
from nosync.model.errors import Failed

KINDS: dict[str, DataType] = {
    "bool": BooleanType(), "int2": ShortType(), "int4": IntegerType(), "int8": LongType(), "float4": FloatType(), "float8": DoubleType(),
    "date": DateType(), "timestamptz": TimestampType(), "timestamp": TimestampNTZType(), "bytea": BinaryType(),
}  # fmt: skip
DIGITS = 38
SETTINGS = {
    "datestyle": "ISO", "timezone": "UTC", "extra_float_digits": "3", "bytea_output": "hex", "intervalstyle": "iso_8601",
    "client_encoding": "UTF8",
}  # fmt: skip
"""Of a session whose texts are read here."""


@dataclass(frozen=True, slots=True)
class Column:
    """As the catalogue has it: the name of its type and the modifier of that."""

    name: str
    kind: str
    modifier: int
    key: bool = False

    @property
    def type(self) -> DataType:
        if self.kind == "numeric" and self.modifier >= 0:
            precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, (self.modifier - 4) & 0x7FF
            if precision <= DIGITS and scale <= precision:
                return DecimalType(precision, scale)
        return KINDS.get(self.kind, StringType())


def schema_of(columns: Sequence[Column]) -> StructType:
    return StructType([StructField(column.name, column.type) for column in columns])


def arrow(column: Column, texts: Sequence[str | None], what: str) -> pa.Array:
    """The values that the texts stand for."""
    found, type = pa.array(texts, pa.string()), arrow_type(column.type, what)
    try:
        match column.type:
            case StringType():
                return found
            case BooleanType():
                return pc.equal(found, "t")
            case BinaryType():
                return pa.array([None if text is None else bytes.fromhex(text[2:]) for text in texts], type)
            case TimestampType():
                return pc.replace_substring_regex(found, r"\+00$", "Z").cast(type)
            case FloatType() | DoubleType():
                return pa.array([None if text is None else float(text) for text in texts], type)
        return found.cast(type)
    except (pa.ArrowException, ValueError) as error:
        hint = "Keep such values out of the table (infinity, NaN of numeric, years before 1), or give the column the type text."
        words = f'{what}, column "{column.name}": a value is none of {column.type.simpleString()}: {error}'
        raise Failed(words, hint) from None
