"""What the rows of files look like: as the user said it, or as Spark finds it in the files that are there."""

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nosync.model.errors import Invalid
from nosync.sources.listing import new_entries, unnamable
from nosync.sources.location import Location, format_of
from nosync.sources.options import literal

HINT = 'Pass schema="column type, ...".'


def schema_of(
    source: str, location: Location, format: str, given: str | StructType | None, options: Mapping[str, Any], spark: SparkSession
) -> StructType:
    """`Invalid` where nobody says it."""
    if isinstance(given, StructType):
        return given
    if format == "text" and given is None:
        return StructType().add("value", "string")
    try:
        if given is not None:
            return spark.createDataFrame([], given).schema
        found = new_entries(location.folder, set(), lambda names: set(), lambda name: location.fits(name) and not unnamable(name))
        there = [literal(str(location.folder / entry.name)) for entry in found]
        reader = spark.read.format(format).options(**options).option("basePath", str(location.folder))
        return reader.load(there or literal(str(location.folder))).schema
    except PySparkException as error:
        raise _no_schema(source, location, format, given, str(error).strip().splitlines()[0]) from None


def _no_schema(source: str, location: Location, format: str, given: str | None, words: str) -> Invalid:
    if given is not None:
        return Invalid(f'source "{source}": the schema "{given}" cannot be read: {words}', hint=HINT)
    other = format_of(location)
    if other not in (None, format):
        what = f'source "{source}" reads {format}, but the files in "{location}" are {other} by their names'
        return Invalid(what, hint=f'Pass format="{other}", and schema="column type, ...".')
    return Invalid(f'source "{source}": it has no schema, and none can be found in "{location}": {words}', hint=HINT)
