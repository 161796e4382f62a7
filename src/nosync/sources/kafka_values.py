"""What the values of a topic are, where a schema says it: objects of JSON, read by Spark, or records of Avro, read by the tasks."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.clients.registry import Registry
from nosync.model.errors import Invalid, Refused, Unavailable
from nosync.model.quoting import quoted
from nosync.sources.avro_task import AvroTask
from nosync.sources.avro_types import avro_schema, endless, expanded, is_avro, record_type
from nosync.sources.rejection import NO_VALUE, UNREAD, WHY, reasons


class Values(Protocol):
    """Values of one form."""

    def declare(self, what: str, spark: SparkSession) -> StructType:
        """The columns; `Invalid` where the schema is none."""

    def asks(self, wanted: Sequence[str]) -> tuple[list[str], AvroTask | None]:
        """Which columns of records are needed where these are wanted, and what decodes values into more columns, to come first."""

    def parsed(self, records: DataFrame, wanted: Sequence[str]) -> DataFrame:
        """The columns, what does not fit (`UNREAD`) and the reason (`WHY`), and those of the record that are wanted, named by `own`."""


def plain(column: str) -> str:
    """What a column of the record is called where nothing is made of its value."""
    return column


def own(column: str) -> str:
    """What a column of the record itself is called beside those of its value, which may have the same name."""
    return f"_nosync_{column}_of_record"


def values_of(schema: str | StructType | None, registry: str | None) -> Values | None:
    """None where nobody says what they are."""
    if isinstance(schema, str) and is_avro(schema):
        return AvroValues(schema, Registry(registry) if registry is not None else None)
    if registry is not None:
        words = "registry= goes with a schema of Avro"
        raise Invalid(words, hint='Pass schema="orders.avsc" (or its JSON): what the rows shall look like, whoever wrote them.')
    return None if schema is None else JsonValues(schema)


@dataclass
class JsonValues:
    """Objects with columns of the schema."""

    given: str | StructType
    schema: StructType = field(default_factory=StructType)

    def declare(self, what: str, spark: SparkSession) -> StructType:
        try:
            self.schema = self.given if isinstance(self.given, StructType) else spark.createDataFrame([], self.given).schema
        except PySparkException as error:
            words = str(error).strip().splitlines()[0]
            raise Invalid(f'{what}: the schema "{self.given}" cannot be read: {words}', hint='Write "column type, ...".') from None
        return self.schema

    def asks(self, wanted: Sequence[str]) -> tuple[list[str], AvroTask | None]:
        return [*dict.fromkeys(("value", *wanted))], None

    def parsed(self, records: DataFrame, wanted: Sequence[str]) -> DataFrame:
        owned = [own(column) for column in wanted]
        schema, text = StructType([*self.schema.fields, StructField(UNREAD, StringType())]), F.col(own("value")).cast("string")
        modes = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": UNREAD}
        read = records.select(F.from_json(text, schema, modes).alias("read"), text.alias("text"), *owned)
        fields = [F.col("read")[column].alias(column) for column in self.schema.names]
        bad = F.when(F.col("text").isNull(), F.lit("")).otherwise(F.col("read")[UNREAD]).alias(UNREAD)
        rows = read.select(*fields, bad, *owned)
        why = F.when(F.col(UNREAD) == "", F.lit(NO_VALUE)).otherwise(reasons("json", self.schema, {})).alias(WHY)
        return rows.select(*map(quoted, self.schema.names), UNREAD, why, *owned)


@dataclass
class AvroValues:
    """Records of a schema of Avro; with a registry, of whatever schemas there are by now that fit it."""

    given: str
    registry: Registry | None
    task: AvroTask | None = None

    def declare(self, what: str, spark: SparkSession) -> StructType:
        text, schema = avro_schema(self.given, what)
        columns = record_type(schema, what)
        if words := endless(expanded(schema)):
            raise Refused(f"{what}: the Avro schema {words}", hint="Leave that out.")
        if self.registry is not None:
            with suppress(Unavailable):  # it is waited for when the flow runs
                self.registry.check(what)
        self.task = AvroTask(text, arrow_schema(columns, what), self.registry)
        return columns

    def asks(self, wanted: Sequence[str]) -> tuple[list[str], AvroTask | None]:
        return [*wanted], self.task

    def parsed(self, records: DataFrame, wanted: Sequence[str]) -> DataFrame:
        return records
