"""Topics of Kafka, without jars: the driver says which offsets belong to an epoch, tasks read them into Arrow.

A slice is `{"ranges": [[topic, partition, start, end], ...]}`, of every partition that is known, also those without anything new: the last
slice says where to go on. Ends are those of what is committed. Compaction and retention may take records that an epoch was computed from;
what cannot be read again is an error that says so.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

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

from nosync.bridge.frames import OBSERVED
from nosync.clients.kafka import Brokers, Offsets, settings
from nosync.model import arguments
from nosync.model.columns import DIFF, FILE, POSITION, RAW, REASON
from nosync.model.errors import Invalid, Unavailable, Unreadable
from nosync.model.quoting import quoted
from nosync.model.source import Slice, Taken
from nosync.sources.avro_task import AvroTask
from nosync.sources.kafka_start import Starting, starting_offsets, starts_at
from nosync.sources.kafka_task import KafkaTask, Range, shared
from nosync.sources.kafka_values import Values, own, plain, values_of
from nosync.sources.rejection import UNREAD, WHY

TYPES: dict[str, DataType] = {
    "key": BinaryType(), "value": BinaryType(), "topic": StringType(), "partition": IntegerType(), "offset": LongType(),
    "timestamp": TimestampType(), "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}  # fmt: skip
PLAIN = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")  # as Spark's own source has them
PLACE = ("topic", "partition", "offset")
MOST_OFFSETS = 1_000_000
LEAST_SHARE = 20_000  # offsets that are worth a task of their own
LOOK_SECONDS = 5.0  # how often new topics and partitions are looked for
BYTES = 100  # about, of a record
TASKS = {
    "enable.auto.commit": False, "enable.auto.offset.store": False, "enable.partition.eof": True, "auto.offset.reset": "error",
    "fetch.wait.max.ms": 20, "queued.max.messages.kbytes": 32768, "group.id": "nosync", "fetch.queue.backoff.ms": 10,
    "check.crcs": True,
}  # fmt: skip


SPARKS = {
    "subscribe": 'Pass the topics second: ns.kafka(servers, "orders").',
    "subscribePattern": "Pass pattern=.",
    "assign": "Pass topics=: all their partitions are read.",
    "failOnDataLoss": 'Pass onDataLoss="skip", or "fail", which it does if nothing is said.',
    "startingOffsetsByTimestamp": "Pass startingOffsets=: a time will do.",
    "startingTimestamp": "Pass startingOffsets=: a time will do.",
    "endingOffsets": "Leave it out: a stream has no end.",
    "minPartitions": "Leave it out: an epoch's records are split by their number.",
    "groupIdPrefix": "Leave it out: offsets are in the home, no group keeps them.",
}


@arguments.checked()
def kafka(
    servers: str,
    topics: str | Sequence[str] | None = None,
    pattern: str | None = None,
    schema: str | StructType | None = None,
    startingOffsets: Starting = "earliest",  # noqa: N803 (Spark's name)
    onDataLoss: Literal["fail", "skip"] = "fail",  # noqa: N803 (as Spark's failOnDataLoss)
    maxOffsetsPerTrigger: int = MOST_OFFSETS,  # noqa: N803 (Spark's name)
    includeHeaders: bool = False,  # noqa: N803 (Spark's name)
    metadata: Sequence[str] = (),
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    registry: str | None = None,
    **options: Any,
) -> "Kafka":
    """Topics of Kafka, by name or all whose names a pattern matches; new partitions and topics are taken from their beginning.

    Without a `schema` the columns are those of Spark's own source: key, value, topic, partition, offset, timestamp, timestampType, and
    with `includeHeaders` headers. With one, each value is a JSON object with these columns; what is not goes to `<source>.rejected`.
    A schema of Avro (its JSON, or the name of an `.avsc` file) says that values are records of it. With a `registry`, its address, they
    begin with the number of their writer's schema, which is fetched from there. `metadata` names columns of the first kind to have besides.

    `startingOffsets`: "earliest", "latest", a time (datetime, or text of ISO 8601), or offsets `{"topic": {0: 5}}`.
    `onDataLoss="skip"` goes on where retention took records before an epoch had read them; "fail" ends the run.
    `options` are those of librdkafka, such as `{"security.protocol": "SASL_SSL", "sasl.username": ...}`.
    Needs the extra: pip install 'nosync[kafka]'.

    >>> ns.kafka("broker:9092", "orders", schema="id bigint, price decimal(9,2)").topics
    ('orders',)
    """
    for name in SPARKS.keys() & options.keys():
        raise Invalid(f'ns.kafka has no argument "{name}"', hint=SPARKS[name])
    named = (topics,) if isinstance(topics, str) else tuple(topics or ())
    if bool(named) == bool(pattern):
        raise Invalid("ns.kafka reads topics by name, or by a pattern", hint='Pass topics="orders", or pattern="orders-.*".')
    if maxOffsetsPerTrigger < 1:
        raise Invalid(f"maxOffsetsPerTrigger={maxOffsetsPerTrigger} takes no records", hint="Pass 1 or more.")
    if onDataLoss not in ("fail", "skip"):
        raise Invalid(f'onDataLoss="{onDataLoss}" is not known', hint='Pass "fail" or "skip".')
    if isolation not in ("read_committed", "read_uncommitted"):
        raise Invalid(f'isolation="{isolation}" is not known', hint='Pass "read_committed" or "read_uncommitted".')
    if isinstance(metadata, str):
        metadata = (metadata,)
    if unknown := [name for name in metadata if name not in TYPES]:
        raise Invalid(f'metadata: a record has no "{unknown[0]}"', hint=f"It has {', '.join(TYPES)}.")
    values = values_of(schema, registry)
    config = {**settings(servers, options), "isolation.level": isolation}
    columns = tuple(metadata) if schema is not None else PLAIN + (("headers",) if includeHeaders else ())
    return Kafka(named, pattern, values, starting_offsets(startingOffsets), onDataLoss == "skip", maxOffsetsPerTrigger, columns, config)


@dataclass(eq=False)
class Kafka:
    """See `kafka`. `position` is where the next epoch begins, by partition; `ends` where the log ended when it was last looked at."""

    topics: tuple[str, ...]
    pattern: str | None
    values: Values | None
    begin: Starting
    skipping: bool
    most: int
    columns: tuple[str, ...]
    config: dict[str, Any] = field(repr=False)
    append_only: bool = True
    position: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    looked_at: float = 0.0
    fresh: bool = True
    allowed: int | None = None
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name, self.what = name, f'source "{name}" (Kafka)'
        self.brokers = Brokers(self.what, self.config, self.config["isolation.level"])
        with suppress(Unavailable):  # it is waited for when the flow runs
            self._check_topics(self.brokers.partitions(self.topics or None))
        self.value = self.values.declare(self.what, spark) if self.values is not None else StructType()
        taken = {*self.columns} & {*self.value.names}
        if taken:
            raise Invalid(f'{self.what}: "{min(taken)}" is a column of the schema and of metadata', hint="Rename that of the schema.")
        self.schema = StructType([*self.value.fields, *(StructField(column, TYPES[column]) for column in self.columns)])
        return self.schema

    def _check_topics(self, found: Mapping[str, Any]) -> None:
        missing = [topic for topic in self.topics if topic not in found]
        if missing:
            raise Invalid(f'{self.what}: there is no topic "{missing[0]}"', hint="Create it, or correct its name.")

    def start(self, folder: Path, taken: Taken) -> None:
        latest = taken.latest
        self.position = {(topic, number): end for topic, number, _, end in latest["ranges"]} if latest else {}
        self.fresh, self.looked_at, self.ends = latest is None, 0.0, {}

    def allow(self, weight: int | None) -> None:
        self.allowed = None if weight is None else max(1, weight // BYTES)

    def available(self) -> Slice | None:
        with self._asking:
            before = dict(self.position)
            self._look_for_partitions()
            self.ends = self.brokers.latest(self.position)
            self._check_ends()
            upper = limited(self.position, self.ends, min(self.most, self.allowed or self.most))
            ranges = [[topic, number, start, upper[topic, number]] for (topic, number), start in sorted(self.position.items())]
            if upper == self.position and not (self.fresh and self.begin != "earliest" and ranges):
                self.position = before if not self.fresh else self.position
                return None
            self.position, self.fresh = upper, False
            return {"ranges": ranges}

    def _look_for_partitions(self) -> None:
        """Those that are new begin at their beginning; those of the first look, where the user says."""
        if time.monotonic() - self.looked_at < LOOK_SECONDS:
            return
        found = self.brokers.partitions(self.topics or None)
        self._check_topics(found)
        matching = {topic: numbers for topic, numbers in found.items() if not self.pattern or re.fullmatch(self.pattern, topic)}
        new = [(topic, number) for topic, numbers in matching.items() for number in numbers if (topic, number) not in self.position]
        first = self.fresh and not self.position
        self.position |= starts_at(self.begin, new, self.brokers) if first else self.brokers.earliest(new)
        self.looked_at = time.monotonic()

    def _check_ends(self) -> None:
        """A topic that was made anew begins at 0 again."""
        for (topic, number), position in self.position.items():
            if self.ends[topic, number] >= position:
                continue
            words = f'{self.what}: topic "{topic}", partition {number} ends at {self.ends[topic, number]}, and {position} was reached'
            raise Invalid(words, hint="The topic was made anew or cut: read it under another name of the source, or on a new home.")

    def reopen(self, slice: Slice, unreadable: Mapping[str, str]) -> Slice:
        """Without what retention took before it was read, if that is to be passed over."""
        if not unreadable or not self.skipping:
            return slice
        first = self._earliest(slice)
        kept = [(topic, number, max(start, first[topic, number]), end) for topic, number, start, end in slice["ranges"]]
        return {"ranges": [[topic, number, min(start, end), end] for topic, number, start, end in kept]}

    def _earliest(self, slice: Slice) -> Offsets:
        return self.brokers.earliest((topic, number) for topic, number, _, _ in slice["ranges"])

    def _ranges(self, slice: Slice) -> list[Range]:
        """What there is to read, after checking that it is still there."""
        ranges = [(topic, number, start, end) for topic, number, start, end in slice["ranges"] if end > start]
        first = self.brokers.earliest({(topic, number) for topic, number, _, _ in ranges})
        for topic, number, start, _ in ranges:
            if start < first[topic, number]:
                words = f'{self.what}: offsets {start} to {first[topic, number] - 1} of topic "{topic}", partition {number} are gone'
                hint = 'Retention took them. Keep records for longer; onDataLoss="skip" goes on without those that no epoch has read.'
                raise Unreadable(words, hint, files={topic: "gone"})
        return ranges

    def _records(self, spark: SparkSession, slice: Slice, columns: Sequence[str], decode: AvroTask | None = None) -> DataFrame:
        shares = shared(self._ranges(slice), spark.sparkContext.defaultParallelism, LEAST_SHARE)
        names = tuple(columns) if self.values is None else tuple(map(own, columns))
        task = KafkaTask({**TASKS, **self.config}, shares, tuple(columns), names, decode)
        before = [*self.value.fields, StructField(UNREAD, StringType()), StructField(WHY, StringType())] if decode is not None else []
        schema = StructType([*before, *(StructField(name, TYPES[column]) for name, column in zip(names, columns, strict=True))])
        return spark.range(0, len(shares), 1, len(shares)).mapInArrow(task, schema)

    def _parsed(self, spark: SparkSession, slice: Slice, more: Sequence[str] = ()) -> DataFrame:
        """With a schema: its columns, the text of what does not fit and why, and columns of the record, under names of their own."""
        assert self.values is not None
        return self.values.parsed(partial(self._records, spark, slice), [*dict.fromkeys((*self.columns, *more))])

    def _declared(self) -> list[Column]:
        """The declared columns of rows that were parsed."""
        return [F.col(quoted(name)) for name in self.value.names] + [F.col(own(name)).alias(name) for name in self.columns]

    def _counts(self) -> list[Column]:
        every = F.struct(*(F.col(quoted(column)) for column in self.value.names))
        bad = [F.count(F.when(F.col(UNREAD).isNotNull(), every)).alias("rejected")] if self.values is not None else []
        return [F.count(F.lit(1)).alias("rows"), *bad]

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        if self.values is None:
            rows = self._records(spark, slice, self.columns).observe(f"{OBSERVED}{self.name}", *self._counts())
        else:
            rows = self._parsed(spark, slice).observe(f"{OBSERVED}{self.name}", *self._counts())
            rows = rows.where(F.col(UNREAD).isNull()).select(*self._declared())
        return rows.select(*map(quoted, self.schema.names), F.lit(1).cast("bigint").alias(DIFF))

    def rejects(self, slice: Slice) -> int:
        return 0

    def rejected(self, spark: SparkSession, slice: Slice, epoch: int) -> DataFrame:
        """What is nothing of the schema: its text (of Avro, its bytes in hexadecimal digits), why, and its place."""
        if self.values is None:
            return spark.createDataFrame([], "raw string, reason string, file string, epoch bigint, _diff bigint")
        bad = self._parsed(spark, slice, PLACE).where(F.col(UNREAD).isNotNull())
        bad = bad.observe(f"{OBSERVED}{self.name}.rejected.{epoch}", *self._counts())
        columns = {"raw": F.col(UNREAD), "reason": F.col(WHY), "file": _place(own), "epoch": F.lit(epoch), DIFF: F.lit(1)}
        whole = ("epoch", DIFF)
        return bad.select(*((column.cast("bigint") if name in whole else column).alias(name) for name, column in columns.items()))

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        """All records for a ledger, in the order of their offsets."""
        if self.values is None:
            rows, named = self._records(spark, slice, self.columns), plain
            raw, reason, declared = F.lit(None).cast("string"), F.lit(None).cast("string"), [F.col(name) for name in self.columns]
        else:
            rows, named = self._parsed(spark, slice, PLACE), own
            raw, reason, declared = F.col(UNREAD), F.when(F.col(UNREAD).isNotNull(), F.col(WHY)), self._declared()
        rows = rows.observe(f"{OBSERVED}{self.name}", *self._counts())
        order = [F.lit(0).cast("bigint"), F.col(named("partition")).cast("bigint"), F.col(named("offset"))]
        positions = [column.alias(name) for column, name in zip(order, POSITION, strict=True)]
        marks = [raw.alias(RAW), reason.alias(REASON), F.when(reason.isNotNull(), _place(named)).alias(FILE)]
        return rows.select(*declared, *marks, *positions, F.lit(1).cast("bigint").alias(DIFF))

    def weight(self, slice: Slice) -> int:
        return BYTES * int(sum(end - start for _, _, start, end in slice["ranges"]))

    def together(self, slices: Sequence[Slice]) -> Slice:
        return {"ranges": [range for slice in slices for range in slice["ranges"]]}

    def lag(self) -> dict[str, int]:
        """How many offsets each partition has that no epoch has taken, as of the last look."""
        known = {partition: start for partition, start in self.position.items() if partition in self.ends}
        return {f"{topic}-{number}": self.ends[topic, number] - start for (topic, number), start in known.items()}

    def close(self) -> None:
        self.brokers.close()


def _place(named: Callable[[str], str]) -> Column:
    return F.concat_ws("/", *(F.col(named(column)) for column in PLACE))


def limited(position: Offsets, ends: Offsets, most: int) -> Offsets:
    """How far an epoch goes in each partition: all get a share of the limit in proportion to what they have."""
    waiting = {partition: ends[partition] - start for partition, start in position.items()}
    total = sum(waiting.values())
    if total <= most:
        return {partition: ends[partition] for partition in position}
    return {partition: start + -(-waiting[partition] * most // total) for partition, start in position.items()}
