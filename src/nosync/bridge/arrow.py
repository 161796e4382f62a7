"""Spark's types as Arrow types: how rows look in tasks, layers and tables."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType

from nosync.model.errors import Refused


def arrow_type(type: DataType, what: str) -> pa.DataType:
    """The Arrow type of a column; refuses the few that Spark cannot hand over."""
    try:
        return to_arrow_type(type, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
    except (PySparkException, TypeError) as error:
        raise Refused(f"{what} has type {type.simpleString()}, which cannot be kept", hint="Cast it, for example to string.") from error


def arrow_schema(schema: StructType, what: str) -> pa.Schema:
    return pa.schema([(field.name, arrow_type(field.dataType, f'{what}, column "{field.name}",')) for field in schema.fields])
