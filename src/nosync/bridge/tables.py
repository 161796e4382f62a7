"""Tables of the session's catalog, as far as PySpark's own methods do not say it."""

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java


def location_of(spark: SparkSession, database: str, table: str) -> str:
    """Where the table lies, or would lie if it were made there."""
    catalog, name = _catalog(spark), _identifier(spark, database, table)
    if catalog.tableExists(name):
        return str(catalog.getTableMetadata(name).location().toString())
    return str(catalog.defaultTablePath(name).toString())


def _catalog(spark: SparkSession) -> Java:
    return spark._jsparkSession.sessionState().catalog()


def _identifier(spark: SparkSession, database: str, table: str) -> Java:
    jvm = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(table, jvm.scala.Option.apply(database))  # type: ignore[union-attr]


def columns_of(spark: SparkSession, schema: StructType) -> str:
    """A schema as `CREATE TABLE` takes it."""
    return str(spark._jsparkSession.parseDataType(schema.json()).toDDL())
