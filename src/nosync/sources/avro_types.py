"""Avro schemas: which Spark types their records have, and what of two schemas does not go together.

A schema is mapped whole or refused, naming the field: nothing is guessed. Logical types are ours to apply, so decoding is given schemas
without them: what a number means says the reader, and a writer that means something else by it is found out before anything is decoded.
"""

import json
from pathlib import Path
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from nosync.model.errors import Invalid, Refused
from nosync.model.extras import needed

Schema = Any
"""As JSON has it: a name, a list (a union) or an object."""

EXTRA = "kafka"
PLAIN: dict[str, DataType] = {
    "boolean": BooleanType(), "int": IntegerType(), "long": LongType(), "float": FloatType(), "double": DoubleType(),
    "bytes": BinaryType(), "string": StringType(), "fixed": BinaryType(), "enum": StringType(),
}  # fmt: skip
LOGICAL: dict[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(), ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(), ("long", "local-timestamp-micros"): TimestampNTZType(),
    ("string", "uuid"): StringType(), ("fixed", "uuid"): StringType(),
}  # fmt: skip
UNMAPPED = ("time-millis", "time-micros", "timestamp-nanos", "local-timestamp-nanos", "duration", "big-decimal")
WIDEST = 38  # digits of a decimal


def is_avro(given: str) -> bool:
    """Whether a text is an Avro schema, or the name of a file with one, and no list of columns."""
    return given.lstrip().startswith("{") or given.endswith(".avsc")


def avro_schema(given: str, what: str) -> tuple[str, Schema]:
    """Of a text, or of the file that it names: its JSON, and what that says."""
    text = given
    if given.endswith(".avsc"):
        try:
            text = Path(given).read_text()
        except OSError as error:
            words = f'{what}: the schema "{given}" cannot be read: {error.strerror}'
            raise Invalid(words, hint="Name a file with a schema of Avro, or pass the schema itself.") from None
    library = needed("fastavro.schema", EXTRA, what)
    try:
        schema = json.loads(text)
        library.parse_schema(schema, named_schemas={})
        return text, schema
    except Exception as error:
        words = str(error).partition("\n")[0] or type(error).__name__
        raise Invalid(f"{what}: this is no schema of Avro: {words}", hint="Its form: https://avro.apache.org/docs/.") from None


def expanded(schema: Schema) -> Schema:
    """With each name replaced by what it names, but where a type has itself in it."""
    return needed("fastavro.schema", EXTRA, "Avro").expand_schema(schema)


def record_type(schema: Schema, what: str) -> StructType:
    """The columns of records of a schema. All may be null: a record that cannot be read has none of them."""
    whole = expanded(schema)
    if not isinstance(whole, dict) or whole["type"] != "record":
        raise Refused(f"{what}: the Avro schema is no record", hint="Its fields become the columns.")
    found = _spark_type(whole, what, "")
    assert isinstance(found, StructType)
    return found


def _spark_type(schema: Schema, what: str, path: str) -> DataType:
    def refused(words: str, hint: str) -> Refused:
        return Refused(f'{what}: field "{path}" of the Avro schema is {words}', hint=hint)

    if isinstance(schema, list):
        some = [branch for branch in schema if branch != "null"]
        if len(some) != 1:
            raise refused("a union of several types", "A union of one type and null has a place in a table; leave the field out.")
        return _spark_type(some[0], what, path)
    base, logical = base_of(schema), logical_of(schema)
    if base == "record":
        if not schema["fields"]:
            raise refused("a record without fields", "Leave it out.")
        below = [(field["name"], f"{path}.{field['name']}".lstrip(".")) for field in schema["fields"]]
        types = [_spark_type(field["type"], what, path) for field, (_, path) in zip(schema["fields"], below, strict=True)]
        return StructType([StructField(name, type) for (name, _), type in zip(below, types, strict=True)])
    if base == "array":
        return ArrayType(_spark_type(schema["items"], what, path))
    if base == "map":
        return MapType(StringType(), _spark_type(schema["values"], what, path))
    if logical in UNMAPPED:
        raise refused(f"a {logical}, which Spark has no type for", "Leave its logicalType out, to have the number or the bytes.")
    if logical == "decimal":
        precision, scale = schema["precision"], schema.get("scale", 0)
        if not 0 <= scale <= precision <= WIDEST:
            raise refused(f"a decimal of {precision} digits, {scale} behind the point", f"Spark's have at most {WIDEST}.")
        return DecimalType(precision, scale)
    if (base, logical) in LOGICAL:
        return LOGICAL[base, logical]
    if base not in PLAIN:
        words = "of type null" if base == "null" else f'of a type that has itself in it ("{base}")'
        raise refused(words, "Leave it out.")
    return PLAIN[base]


def base_of(schema: Schema) -> str:
    """What a schema that is no union is without its logical type."""
    found = schema["type"] if isinstance(schema, dict) else schema
    return base_of(found) if isinstance(found, dict) else str(found)


def logical_of(schema: Schema) -> str:
    """One that counts: others are to be ignored."""
    if not isinstance(schema, dict):
        return ""
    base, logical = base_of(schema), schema.get("logicalType") or ""
    if isinstance(schema["type"], dict) and not logical:
        return logical_of(schema["type"])
    if logical == "decimal":
        whole = isinstance(schema.get("precision"), int) and isinstance(schema.get("scale", 0), int)
        return logical if base in ("bytes", "fixed") and whole else ""
    return logical if (base, logical) in LOGICAL or (logical in UNMAPPED and base in PLAIN) else ""


def bare(schema: Schema) -> Schema:
    """Without logical types."""
    if isinstance(schema, list):
        return [bare(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    inside = ("type", "items", "values", "fields")
    return {name: bare(value) if name in inside else value for name, value in schema.items() if name != "logicalType"}


def fit_defaults(schema: Schema, named: dict[str, Schema]) -> None:
    """Defaults of bytes are written as text, a character a byte: in a parsed schema they become bytes."""
    for record in [found for found in named.values() if found["type"] in ("record", "error")]:
        for field in record["fields"]:
            if "default" in field:
                field["default"] = _default(field["type"], field["default"], named)


def _default(schema: Schema, value: Any, named: dict[str, Schema]) -> Any:
    if isinstance(schema, list):
        return value if value is None else _default(next(branch for branch in schema if branch != "null"), value, named)
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    base = base_of(schema)
    if base in ("bytes", "fixed") and isinstance(value, str):
        return value.encode("latin-1")
    if base == "array":
        return [_default(schema["items"], item, named) for item in value]
    if base == "map":
        return {name: _default(schema["values"], item, named) for name, item in value.items()}
    if base == "record" and isinstance(value, dict):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        return {name: _default(types[name], item, named) for name, item in value.items() if name in types}
    return value


def unlike(writer: Schema, reader: Schema, path: str = "") -> str:
    """Where the same number means something else to two schemas (both expanded); nothing where it does not."""
    if isinstance(writer, list) or isinstance(reader, list):
        pairs = [(one, other) for one in _branches(writer) for other in _branches(reader)]
        return next(filter(None, (unlike(one, other, path) for one, other in pairs)), "")
    base = base_of(writer)
    if base != base_of(reader):
        return ""
    if base == "record":
        written = {field["name"]: field["type"] for field in writer["fields"]}
        for field in reader["fields"]:
            name = next((known for known in (field["name"], *field.get("aliases", ())) if known in written), None)
            if name is not None and (words := unlike(written[name], field["type"], f"{path}.{name}".lstrip("."))):
                return words
        return ""
    if base in ("array", "map"):
        inner = "items" if base == "array" else "values"
        return unlike(writer[inner], reader[inner], path)
    mine, theirs = _meaning(reader), _meaning(writer)
    return f"{path} is {theirs} there, and {mine} here" if mine and theirs and mine != theirs else ""


def _branches(schema: Schema) -> list[Schema]:
    return [branch for branch in schema if branch != "null"] if isinstance(schema, list) else [schema]


def _meaning(schema: Schema) -> str:
    found = logical_of(schema)
    return f"decimal with scale {schema.get('scale', 0)}" if found == "decimal" else found


def endless(schema: Schema) -> str:
    """Why a few bytes of a schema (expanded) could be read for ever; nothing where they could not."""
    if isinstance(schema, list):
        return next(filter(None, map(endless, schema)), "")
    base = base_of(schema)
    if base == "record":
        return next(filter(None, (endless(field["type"]) for field in schema["fields"])), "")
    if base == "array" and _weightless(schema["items"]):
        return "has an array of what takes no bytes"
    if base in ("array", "map"):
        return endless(schema["items" if base == "array" else "values"])
    return "" if base in PLAIN or base == "null" else f'has the type "{base}", which has itself in it'


def _weightless(schema: Schema) -> bool:
    if isinstance(schema, list):
        return False
    base = base_of(schema)
    return base == "null" or (base == "fixed" and schema["size"] == 0) or (
        base == "record" and all(_weightless(field["type"]) for field in schema["fields"])
    )
