"""Tables of the session's catalog, as far as PySpark's own methods do not say it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java, items
from nosync.model.quoting import quoted


def location_of(spark: SparkSession, database: str, table: str) -> str:
    """Where the table lies, or would lie if it were made there."""
    catalog, name = _catalog(spark), _identifier(spark, database, table)
    if catalog.tableExists(name):
        return str(catalog.getTableMetadata(name).location().toString())
    return str(catalog.defaultTablePath(name).toString())


def _catalog(spark: SparkSession) -> Java:
    return spark._jsparkSession.sessionState().catalog()


def _identifier(spark: SparkSession, database: str, table: str) -> Java:
    """Parsed: to look up a class costs a call for each part of its name."""
    return spark._jsparkSession.sessionState().sqlParser().parseTableIdentifier(f"{quoted(database)}.{quoted(table)}")


@dataclass(frozen=True)
class Entry:
    """What the catalog says of a table."""

    format: str
    columns: Mapping[str, str]
    partition_by: tuple[str, ...]
    comment: str | None
    properties: Mapping[str, str]


def entry_of(spark: SparkSession, database: str, table: str) -> Entry | None:
    """None where there is no such table."""
    catalog, name = _catalog(spark), _identifier(spark, database, table)
    if not catalog.tableExists(name):
        return None
    found = catalog.getTableMetadata(name)
    provider, comment, properties = found.provider(), found.comment(), found.properties().toSeq()
    return Entry(
        str(provider.get()).lower() if provider.isDefined() else "",
        types_of(StructType.fromJson(json.loads(found.schema().json()))),
        tuple(map(str, items(found.partitionColumnNames()))),
        str(comment.get()) if comment.isDefined() else None,
        {str(pair._1()): str(pair._2()) for pair in items(properties)},
    )


def types_of(schema: StructType) -> dict[str, str]:
    """Columns with their types; whether they may be null is nothing to a table of files."""
    return {field.name: field.dataType.simpleString() for field in schema}


def forget_files(spark: SparkSession, database: str, table: str) -> None:
    """The session looks for the files of the table again when it reads it next."""
    name = _identifier(spark, database, table)
    _catalog(spark).refreshTable(name)


def columns_of(spark: SparkSession, schema: StructType) -> str:
    """A schema as `CREATE TABLE` takes it."""
    return str(spark._jsparkSession.parseDataType(schema.json()).toDDL())
