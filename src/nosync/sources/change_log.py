"""Sources whose rows are changes: insertions, updates and removals of rows, with or without a key.

Without `op_column` the source itself says by `_diff` what is added and what is removed.

`op_column` names the column that says what a row does (see `model.changes` for the words). A row that has columns `before` and `after` of
one structure is an envelope, as Debezium writes them: the rows are inside. `sequence` names a column (or a field inside one) that says
which of two rows of a key is newer; without it the order of the input does, file by file and row by row.

A row whose word is not known, or whose image is missing, never becomes a change: it is rejected, like one that cannot be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from nosync.bridge.columns import column_named
from nosync.compile.ledger import incoming
from nosync.model.bound import BoundSource
from nosync.model.changes import ADDING, AFTER, BEFORE, REMOVING, REPLACING, effects
from nosync.model.columns import DIFF, EPOCH, FILE, POSITION, RAW, REASON, REJECTION, SEQUENCE
from nosync.model.errors import Invalid
from nosync.model.source import Slice

UNORDERED = (ArrayType, MapType, StructType, VariantType)


@dataclass(frozen=True)
class Reading:
    """How `flow.source` is to take the rows of a source. `key` is empty where every row counts by itself."""

    key: tuple[str, ...] = ()
    op_column: str | None = None
    sequence: str | None = None

    @property
    def carries_changes(self) -> bool:
        return bool(self.key) or self.op_column is not None

    def by(self, keys: Sequence[str]) -> "Reading":
        """By the keys that the source knows, where the user has said nothing."""
        return self if self.carries_changes else replace(self, key=tuple(keys))


def reading_of(source: str, key: str | Sequence[str] | None, op_column: str | None, sequence: str | None) -> Reading:
    if key is not None and not key:
        raise Invalid(f'source "{source}": its key has no columns', hint="Name a column, or leave key= out.")
    if sequence is not None and not key:
        raise Invalid(f'source "{source}": sequence="{sequence}" orders the rows of a key', hint="Pass key=[...] as well, or leave it out.")
    return Reading((key,) if isinstance(key, str) else tuple(key or ()), op_column, sequence)


class ChangeLog:
    """Reads from a source what its ledger needs: see `compile.ledger`. `given` is the schema of the source."""

    def __init__(self, name: str, source: BoundSource, given: StructType, reading: Reading) -> None:
        self.name, self.source, self.given = name, source, given
        self.key, self.op_column, self.sequence = reading.key, reading.op_column, reading.sequence
        if self.op_column is not None and self.op_column not in given.names:
            raise Invalid(f'source "{name}" has no column "{self.op_column}"', hint=f"op_column= is one of {', '.join(given.names)}.")
        twice = next((column for column in self.key if self.key.count(column) > 1), None)
        if twice is not None:
            raise Invalid(f'source "{name}" has "{twice}" twice in its key', hint="Name each column of the key once.")
        for column in self.key:
            if column not in self.columns.names:
                words = f'source "{name}" has no column "{column}"'
                words = f'source "{name}": "{column}" cannot be its key and its op_column' if column == self.op_column else words
                names = ", ".join(self.columns.names)
                raise Invalid(words, hint=f"key= is of {names}." if names else "Its rows need a column besides.")
        reserved = {*REJECTION, *POSITION, SEQUENCE, EPOCH, DIFF} & {*given.names, *self.columns.names}
        if reserved:
            raise Invalid(f'source "{name}" has a column "{min(reserved)}"', hint="This name is taken here: choose another.")

    @cached_property
    def enveloped(self) -> bool:
        return self.op_column is not None and _is_envelope(self.given)

    @cached_property
    def columns(self) -> StructType:
        """Those of the rows that change."""
        inner = self.given["after"].dataType if self.enveloped else self.given
        assert isinstance(inner, StructType)
        return StructType([field for field in inner.fields if self.enveloped or field.name != self.op_column])

    def schema(self, spark: SparkSession) -> StructType:
        """What `read` gives, apart from the diff."""
        return incoming(self.columns, self._order(spark))

    def bound(self) -> BoundSource:
        """The source, read by this."""
        inner = self.source.shaped_events
        shaped = None if inner is None else replace(inner, shape=lambda rows: self._changes(inner.shape(rows)))
        return replace(
            self.source, append_only=False, read=self.read, table=None, rejecting=None, direct=None, together=None, events=None,
            shaped=shaped, shaped_events=None,
        )  # fmt: skip

    def _order(self, spark: SparkSession) -> StructField | None:
        if self.sequence is None:
            return None
        try:
            [field] = spark.createDataFrame([], self.given).select(F.col(self.sequence)).schema.fields
        except PySparkException:
            names = ", ".join(self.given.names)
            raise Invalid(f'source "{self.name}" has no column "{self.sequence}"', hint=f"sequence= is of {names}.") from None
        if isinstance(field.dataType, UNORDERED):
            kind = field.dataType.simpleString()
            raise Invalid(f'source "{self.name}": sequence="{self.sequence}" is {kind}', hint="Name a number, a time or a text.")
        return field

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        return self._changes(self._events(spark, slice))

    def _changes(self, events: DataFrame) -> DataFrame:
        """What the rows do, and those that are no changes."""
        found = self._enveloped(events) if self.enveloped else self._plain(events)
        return found.where(F.col(REASON).isNotNull() | (F.col(DIFF) != 0))

    def _events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """The source's rows, each with what is known of it; a source that knows no positions leaves the order open."""
        if self.source.events is not None:
            return self.source.events(spark, slice)
        nothing = [F.lit(None).cast("string").alias(name) for name in REJECTION] + [F.lit(0).cast("bigint").alias(n) for n in POSITION]
        return self.source.read(spark, slice).select(*map(column_named, self.given.names), *nothing, DIFF)

    @property
    def _word(self) -> Column:
        return F.lower(F.trim(self._op))

    @property
    def _op(self) -> Column:
        assert self.op_column is not None
        return column_named(self.op_column).cast("string")

    def _plain(self, events: DataFrame) -> DataFrame:
        """One row, one change."""
        columns = [column_named(name) for name in self.columns.names]
        if self.op_column is None:
            return self._selected(events, columns, F.col(REASON), F.lit(1))
        effect = F.coalesce(*(F.when(self._word.isin(*words), F.lit(effect)) for words, effect in effects(bool(self.key)).items()))
        reason = F.coalesce(F.col(REASON), F.when(effect.isNull(), self._unknown()))
        return self._selected(events, columns, reason, F.coalesce(effect, F.lit(0)))

    def _unknown(self) -> Column:
        word = F.coalesce(self._op, F.lit("null"))
        unknown = F.concat(F.lit(f'{self.op_column}: "'), word, F.lit('" is no change'))
        return F.when(self._word.isin(*REPLACING), F.lit("an update without a key: nobody knows what it replaces")).otherwise(unknown)

    def _enveloped(self, events: DataFrame) -> DataFrame:
        """One row, one change; or two, where an update has no key."""
        steps = [("after", ADDING + REPLACING + AFTER, 1), ("before", REMOVING + (() if self.key else REPLACING + BEFORE), -1)]
        asked = [F.when(self._word.isin(*words), _image(image, effect)) for image, words, effect in steps]
        images = F.filter(F.array(*asked), lambda image: image.isNotNull())
        absent = [F.when(self._word.isin(*words) & F.col(image).isNull(), F.lit(f"{image} is missing")) for image, words, _ in steps]
        known = self._word.isin(*BEFORE, *(word for _, words, _ in steps for word in words))
        reason = F.coalesce(F.col(REASON), *absent, F.when(~F.coalesce(known, F.lit(False)), self._unknown()))
        nothing = F.array(F.struct(F.col("after").alias("row"), F.lit(0).alias("effect")))
        opened = events.withColumn(REASON, reason)
        opened = opened.withColumn("_image", F.explode(F.when(F.col(REASON).isNull() & (F.size(images) > 0), images).otherwise(nothing)))
        columns = [F.col("_image.row").getField(name).alias(name) for name in self.columns.names]
        return self._selected(opened, columns, F.col(REASON), F.col("_image.effect"))

    def _selected(self, events: DataFrame, columns: list[Column], reason: Column, effect: Column) -> DataFrame:
        event = F.to_json(F.struct(*map(column_named, self.given.names)))
        raw = F.when(reason.isNotNull(), F.coalesce(F.col(RAW), event))
        order = [F.col(self.sequence).alias(SEQUENCE)] if self.sequence is not None else []
        diff = (effect * F.col(DIFF)).cast("bigint").alias(DIFF)
        return events.select(*columns, raw.alias(RAW), reason.alias(REASON), FILE, *order, *POSITION, diff)


def _is_envelope(schema: StructType) -> bool:
    """Whether there are a `before` and an `after` of the same fields."""
    if not {"before", "after"} <= {*schema.names}:
        return False
    before, after = schema["before"].dataType, schema["after"].dataType
    return isinstance(before, StructType) and isinstance(after, StructType) and before.simpleString() == after.simpleString()


def _image(name: str, effect: int) -> Column:
    return F.struct(F.col(name).alias("row"), F.lit(effect).alias("effect"))
