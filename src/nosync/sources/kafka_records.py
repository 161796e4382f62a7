"""The rows of ranges of a topic: read by tasks, or, where they are few, by this process; and what Spark makes of them.

Few rows are read without a job: consumers that are kept have mostly fetched them by the time they are asked for. How many bytes may be held
is bounded: `TooMany` sends the epoch the other way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.columns import column_named
from nosync.bridge.kept_plans import TooMany
from nosync.model.columns import DIFF, FILE, POSITION, RAW, REASON
from nosync.model.identifiers import Epoch
from nosync.sources.kafka_task import READERS, KafkaTask, Range, Readers, shared
from nosync.sources.kafka_values import Values, own, plain
from nosync.sources.rejection import NO_VALUE, UNREAD, WHY

TYPES: dict[str, DataType] = {
    "key": BinaryType(), "value": BinaryType(), "topic": StringType(), "partition": IntegerType(), "offset": LongType(),
    "timestamp": TimestampType(), "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}  # fmt: skip
PLACE = ("topic", "partition", "offset")
LEAST_SHARE = 20_000  # offsets that are worth a task of their own
HELD_BYTES = 64 << 20  # of one epoch
WAIT = 20  # milliseconds that a broker waits for something new
TASKS = {
    "enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True, "auto.offset.reset": "error",
    "fetch.wait.max.ms": WAIT, "queued.max.messages.kbytes": 32768, "group.id": "nosync", "fetch.queue.backoff.ms": 10,
    "check.crcs": True,
}  # fmt: skip
HERE = {"queued.max.messages.kbytes": 4096}  # of each partition, in this process
WAIT_OF_EACH = 5  # the consumers of this process ask the brokers at most 200 times a second, all together


@dataclass
class Records:
    """`value` are the columns of values, if a schema says them; `columns` those of records that are declared besides. `key`: those of
    values that the keys of messages hold; a record without a value removes the row then.
    """

    values: Values | None
    value: StructType
    columns: tuple[str, ...]
    config: dict[str, Any] = field(repr=False)
    key: tuple[str, ...] = ()
    readers: Readers = field(default_factory=Readers)

    def frame(self, spark: SparkSession, ranges: Sequence[Range], more: Sequence[str] = ()) -> DataFrame:
        """By tasks. `more`: columns of records that are not declared."""
        task, schema = self._task(shared(ranges, spark.sparkContext.defaultParallelism, LEAST_SHARE), TASKS, more)
        shares = len(task.shares)
        return self.parsed(spark.range(0, shares, 1, shares).mapInArrow(task, schema), more)

    def table(self, ranges: Sequence[Range], partitions: int, more: Sequence[str] = ()) -> pa.Table | None:
        """What `parsed` makes rows of, by this process; None where so many partitions are better read by tasks."""
        if partitions > READERS:
            return None
        wait = max(WAIT, WAIT_OF_EACH * partitions)
        task, schema = self._task((), {**TASKS, **HERE, "fetch.wait.max.ms": wait}, more)
        batches, held = list[pa.RecordBatch](), 0
        for batch in task.read(ranges, self.readers):
            batches.append(batch)
            held += batch.nbytes
            if held > HELD_BYTES:
                raise TooMany
        wanted = arrow_schema(schema, "a topic of Kafka")
        return pa.Table.from_batches(batches).cast(wanted) if batches else wanted.empty_table()

    def schema(self, more: Sequence[str] = ()) -> StructType:
        """That of `table`."""
        return self._task((), TASKS, more)[1]

    def _task(self, shares: tuple[tuple[Range, ...], ...], settings: dict[str, Any], more: Sequence[str]) -> tuple[KafkaTask, StructType]:
        columns, decode = ([*self.columns], None) if self.values is None else self.values.asks(self._wanted(more))
        names = tuple(columns) if self.values is None else tuple(map(own, columns))
        before = [*self.value.fields, StructField(UNREAD, StringType()), StructField(WHY, StringType())] if decode is not None else []
        schema = StructType([*before, *(StructField(name, TYPES[column]) for name, column in zip(names, columns, strict=True))])
        return KafkaTask({**settings, **self.config}, shares, tuple(columns), names, decode), schema

    def _wanted(self, more: Sequence[str]) -> list[str]:
        return [*dict.fromkeys((*self.columns, *more))]

    def parsed(self, records: DataFrame, more: Sequence[str] = ()) -> DataFrame:
        """With a schema: its columns, the text of what does not fit and why, and columns of the record, under names of their own."""
        return records if self.values is None else self.values.parsed(records, self._wanted(more))

    def declared(self) -> list[Column]:
        """The declared columns of rows that were parsed."""
        if self.values is None:
            return [column_named(name) for name in self.columns]
        return [column_named(name) for name in self.value.names] + [F.col(own(name)).alias(name) for name in self.columns]

    def unread(self) -> Column:
        return F.lit(None).cast("string") if self.values is None else F.col(UNREAD)

    def rows(self, parsed: DataFrame) -> DataFrame:
        """The rows of a source, behind what does not fit."""
        return parsed.select(self.unread().alias(UNREAD), *self.declared(), F.lit(1).cast("bigint").alias(DIFF))

    def events(self, parsed: DataFrame) -> DataFrame:
        """All records for a ledger, in the order of their offsets."""
        named = plain if self.values is None else own
        gone, keys = self._gone()
        raw = F.when(~gone, self.unread())
        reason = F.when(raw.isNotNull(), F.lit(None).cast("string") if self.values is None else F.col(WHY))
        held = {name: F.when(gone, key).otherwise(column_named(name)).alias(name) for name, key in keys.items()}
        rows = [held.get(name, column) for name, column in zip((*self.value.names, *self.columns), self.declared())]
        order = [F.lit(0).cast("bigint"), F.col(named("partition")).cast("bigint"), F.col(named("offset"))]
        positions = [column.alias(name) for column, name in zip(order, POSITION, strict=True)]
        marks = [raw.alias(RAW), reason.alias(REASON), F.when(reason.isNotNull(), place(named)).alias(FILE)]
        return parsed.select(*rows, *marks, *positions, F.when(gone, -1).otherwise(1).cast("bigint").alias(DIFF))

    def _gone(self) -> tuple[Column, dict[str, Column]]:
        """Whether a record takes its row back, and the columns by which that is found: of one column its text, of several a JSON object."""
        if not self.key:
            return F.lit(False), {}
        text, fields = F.col(own("key")).cast("string"), [self.value[name] for name in self.key]
        if len(fields) > 1:
            held = F.from_json(text, StructType(fields))
            keys = {name: held[name] for name in self.key}
        else:
            bare = text if isinstance(fields[0].dataType, StringType) else F.regexp_replace(text, '^"|"$', "")
            keys = {self.key[0]: bare.try_cast(fields[0].dataType)}
        return reduce(and_, (key.isNotNull() for key in keys.values()), F.coalesce(F.col(WHY) == NO_VALUE, F.lit(False))), keys

    def rejected(self, parsed: DataFrame, epoch: Epoch) -> DataFrame:
        """What is nothing of the schema: its text (of Avro, its bytes in hexadecimal digits), why, and its place."""
        number, diff = (F.lit(value).cast("bigint") for value in (epoch, 1))
        columns = {"raw": F.col(UNREAD), "reason": F.col(WHY), "file": place(own), "epoch": number, DIFF: diff}
        return parsed.select(*(column.alias(name) for name, column in columns.items()))

    def counts(self) -> list[Column]:
        every = F.struct(*(column_named(column) for column in self.value.names))
        bad = [F.count(F.when(F.col(UNREAD).isNotNull(), every)).alias("rejected")] if self.values is not None else []
        return [F.count(F.lit(1)).alias("rows"), *bad]

    def close(self) -> None:
        self.readers.close()


def place(named: Callable[[str], str]) -> Column:
    return F.concat_ws("/", *(F.col(named(column)) for column in PLACE))
