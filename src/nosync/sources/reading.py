"""Files as DataFrames: their rows, those that do not fit the schema, and all of them with where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.columns import column_named
from nosync.bridge.frames import OBSERVED
from nosync.model.columns import DIFF, FILE, POSITION, RAW, REASON
from nosync.model.identifiers import Epoch
from nosync.sources.csv_task import csv_frame, is_text, plain_csv
from nosync.sources.options import literal
from nosync.sources.plain_csv import PlainCsv
from nosync.sources.positions import FILE_PATH, positions
from nosync.sources.rejection import UNREAD, reasons

TEXTUAL = ("csv", "json")  # where a single row can be broken


@dataclass(frozen=True)
class Reading:
    """How the files of a source are read."""

    source: str
    format: str
    schema: StructType
    options: dict[str, Any] = field(repr=False)  # may hold passwords and keys

    def plain(self, spark: SparkSession, names: Sequence[str]) -> PlainCsv | None:
        """How tasks can read these files by themselves; None where Spark's reader has to. A name may say the value of a column."""
        if self.format != "csv" or not all(is_text(name) and "=" not in name for name in names):
            return None
        return plain_csv(spark, self.schema, self.options)

    def rows(self, spark: SparkSession, paths: Sequence[str], base: Path, plain: PlainCsv | None) -> DataFrame:
        """Those that fit, each one added."""
        rows = self._scan(spark, paths, base) if plain is None else csv_frame(spark, paths, plain, self.schema)
        if self.format != "parquet":
            rows = rows.observe(self._observation, *self._observed_counts)
        if self.format in TEXTUAL:
            rows = rows.where(F.col(UNREAD).isNull())
        return rows.select(*self._columns)

    def rejected(self, spark: SparkSession, paths: Sequence[str], base: Path, epoch: Epoch) -> DataFrame:
        """Raw text, reason and file of the rows that do not fit."""
        scanned = self._scan(spark, paths, base).withColumn(FILE, F.col(FILE_PATH))
        bad = scanned.observe(f"{self._observation}.rejected.{epoch}", *self._observed_counts).where(F.col(UNREAD).isNotNull())
        reason = reasons(self.format, self.schema, self.options).alias("reason")
        return bad.select(F.col(UNREAD).alias("raw"), reason, F.col(FILE).alias("file"))

    def events(self, spark: SparkSession, paths: Sequence[str], base: Path) -> DataFrame:
        """All rows for a ledger, but for the diff: raw text and reason of those that do not fit, the file, the position."""
        rows = self._scan(spark, paths, base).select("*", F.col(FILE_PATH).alias(FILE), *positions(spark, paths))
        if self.format != "parquet":
            rows = rows.observe(self._observation, *self._observed_counts)
        textual, nothing = self.format in TEXTUAL, F.lit(None).cast("string")
        raw = F.col(UNREAD) if textual else nothing
        reason = F.when(raw.isNotNull(), reasons(self.format, self.schema, self.options)) if textual else nothing
        return rows.select(*self._columns[:-1], raw.alias(RAW), reason.alias(REASON), FILE, *POSITION)

    def failed(self, spark: SparkSession, broken: Sequence[tuple[str, str]]) -> DataFrame:
        """Files that could not be read, with the reason, as `events` has rows."""
        empty = [F.lit(None).cast(column.dataType).alias(column.name) for column in self.schema.fields]
        nowhere = [F.lit(0).cast("bigint").alias(name) for name in POSITION]
        found = spark.createDataFrame(broken, f"{REASON} string, {FILE} string")
        return found.select(*empty, F.lit(None).cast("string").alias(RAW), REASON, FILE, *nowhere)

    @cached_property
    def _columns(self) -> list[Column]:
        return [*(column_named(column) for column in self.schema.names), F.lit(1).cast("bigint").alias(DIFF)]

    @cached_property
    def _observed_counts(self) -> list[Column]:
        """Rows and rejected rows. Naming every column makes Spark read them all, for every view: else a row that is broken in one column
        would be good to a query that does not use it."""
        if self.format not in TEXTUAL:
            return [F.count(F.lit(1)).alias("rows")]
        every = F.struct(*(column_named(column) for column in self.schema.names))
        return [F.count(F.lit(1)).alias("rows"), F.count(F.when(F.col(UNREAD).isNotNull(), every)).alias("rejected")]

    @property
    def _observation(self) -> str:
        """The name under which Spark counts the source's rows on the way."""
        return f"{OBSERVED}{self.source}"

    def _scan(self, spark: SparkSession, paths: Sequence[str], base: Path) -> DataFrame:
        schema = StructType([*self.schema.fields])
        if self.format in TEXTUAL:
            schema = schema.add(UNREAD, "string")
        reader = spark.read.format(self.format).schema(schema).options(**self.options).option("basePath", str(base))
        if self.format in TEXTUAL:
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", UNREAD)
        return reader.load([literal(path) for path in paths])
