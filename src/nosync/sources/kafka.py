"""Topics of Kafka, without jars: the driver says which offsets belong to an epoch, tasks read them into Arrow.

A slice is `{"ranges": [[topic, partition, start, end], ...]}`, of every partition that is known, also those without anything new: the last
slice says where to go on. Ends are those of what is committed. Compaction and retention may take records that an epoch was computed from;
what cannot be read again is an error that says so.
"""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from nosync.bridge.frames import OBSERVED
from nosync.clients.kafka import Brokers, NotThere, Offsets, Partition, library, settings
from nosync.model import arguments
from nosync.model.absent import connector
from nosync.model.columns import DIFF
from nosync.model.errors import Invalid, Unavailable, Unreadable
from nosync.model.identifiers import Epoch
from nosync.model.source import Position, Shaped, Slice, Taken, rows_within
from nosync.sources.kafka_records import PLACE, TYPES, Records
from nosync.sources.kafka_start import Starting, offsets_in, starting_offsets, starts_at
from nosync.sources.kafka_task import Range
from nosync.sources.kafka_values import Values, values_of
from nosync.sources.rejection import SCHEMA, UNREAD

PLAIN = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")  # as Spark's own source has them
MOST_OFFSETS = 1_000_000
GO_ON = 'onDataLoss="skip" goes on with what is there; or read it under another name of the source, or on a new home.'
LOOK_SECONDS = 5.0  # how often new topics and partitions are looked for
BYTES = 100  # about, of a record


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
    key: str | Sequence[str] = (),
    **options: Any,
) -> "Kafka":
    """Topics of Kafka, by name or all whose names a pattern matches; new partitions and topics are taken from their beginning.

    Without a `schema` the columns are those of Spark's own source: key, value, topic, partition, offset, timestamp, timestampType, and
    with `includeHeaders` headers. With one, each value is a JSON object with these columns; what is not goes to `<source>.rejected`.
    A schema of Avro (its JSON, or the name of an `.avsc` file) says that values are records of it. With a `registry`, its address, they
    begin with the number of their writer's schema, which is fetched from there. `metadata` names columns of the first kind to have besides.

    `key` names the columns of the schema that the keys of messages hold, as `ns.to_kafka` writes them (the text of one, a JSON object of
    several): the newest record of a key counts, and one without a value removes its row.

    `startingOffsets`: "earliest", "latest", a time (datetime, or text of ISO 8601), or offsets `{"topic": {0: 5}}`.
    `onDataLoss="skip"` goes on where retention took records before an epoch had read them, or a topic was deleted or made anew; "fail"
    ends the run.
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
    library("ns.kafka")
    keys = (key,) if isinstance(key, str) else tuple(key)
    if keys and schema is None:
        raise Invalid(f'key="{keys[0]}" is a column of the schema, and there is none', hint="Pass schema= as well.")
    values = values_of(schema, registry)
    config = {**settings(servers, options), "isolation.level": isolation}
    columns = tuple(metadata) if schema is not None else PLAIN + (("headers",) if includeHeaders else ())
    begin, skipping = starting_offsets(startingOffsets), onDataLoss == "skip"
    return Kafka(named, pattern, values, begin, skipping, maxOffsetsPerTrigger, columns, keys, config)


@connector("source", "kafka")
@dataclass(eq=False, repr=False)
class Kafka:
    """See `kafka`. `position` is where the next epoch begins, by partition; `ends` where the log ended when it was last looked at."""

    topics: tuple[str, ...]
    pattern: str | None
    values: Values | None
    begin: Starting
    skipping: bool
    most: int
    columns: tuple[str, ...]
    key: tuple[str, ...]
    config: dict[str, Any] = field(repr=False)
    append_only: bool = True
    position: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    looked_at: float = 0.0
    fresh: bool = True
    allowed: int | None = None
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def __repr__(self) -> str:
        return f"ns.kafka({f'pattern={self.pattern!r}' if self.pattern else ', '.join(self.topics)})"

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name, self.what = name, f'source "{name}" (Kafka)'
        self.brokers = Brokers(self.what, self.config, self.config["isolation.level"])
        with suppress(Unavailable):  # it is waited for when the flow runs
            self._check_topics(self.brokers.partitions(self.topics or None))
        self.value = self.values.declare(self.what, spark) if self.values is not None else StructType()
        taken = {*self.columns} & {*self.value.names}
        if taken:
            raise Invalid(f'{self.what}: "{min(taken)}" is a column of the schema and of metadata', hint="Rename that of the schema.")
        if missing := [column for column in self.key if column not in self.value.names]:
            raise Invalid(f'{self.what}: the schema has no column "{missing[0]}"', hint=f"key= is of {', '.join(self.value.names)}.")
        self.records = Records(self.values, self.value, self.columns, self.config, self.key)
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

    def continue_from(self, position: Position) -> Slice:
        offsets = offsets_in(self.what, position.offset)
        for topic in sorted(offsets):
            if topic not in self.topics and not (self.pattern and re.fullmatch(self.pattern, topic)):
                raise Invalid(f'{self.what} does not read topic "{topic}" of the checkpoint', hint="Let it read what the query has read.")
        return {"ranges": [[topic, number, end, end] for topic, found in sorted(offsets.items()) for number, end in sorted(found.items())]}

    def allow(self, weight: int | None) -> None:
        self.allowed = rows_within(weight, BYTES)

    def available(self) -> Slice | None:
        with self._asking:
            before = dict(self.position)
            self._look_for_partitions()
            self.ends = self._latest()
            self._check_ends()
            upper = limited(self.position, self.ends, min(self.most, self.allowed or self.most))
            ranges = [[topic, number, start, upper[topic, number]] for (topic, number), start in sorted(self.position.items())]
            if upper == self.position and not (self.fresh and self.begin != "earliest" and ranges):
                self.position = before if not self.fresh else self.position
                return None
            self.position, self.fresh = upper, False
            return {"ranges": ranges}

    def _latest(self) -> Offsets:
        """Where all partitions end; what a broker does not know is looked for at once."""
        try:
            return self.brokers.latest(self.position)
        except NotThere:
            self.looked_at = 0.0
            self._look_for_partitions()
            return self.brokers.latest(self.position)

    def _look_for_partitions(self) -> None:
        """Those that are new begin at their beginning; those of the first look, where the user says. None may vanish."""
        if time.monotonic() - self.looked_at < LOOK_SECONDS:
            return
        found = self.brokers.partitions(self.topics or None)
        self._check_gone([place for place in self.position if place[1] not in found.get(place[0], ())])
        if not self.skipping:
            self._check_topics(found)
        matching = {topic: numbers for topic, numbers in found.items() if not self.pattern or re.fullmatch(self.pattern, topic)}
        new = [(topic, number) for topic, numbers in matching.items() for number in numbers if (topic, number) not in self.position]
        first = self.fresh and not self.position
        self.position |= starts_at(self.begin, new, self.brokers) if first else self.brokers.earliest(new)
        self.looked_at = time.monotonic()

    def _check_gone(self, gone: Sequence[Partition]) -> None:
        """Partitions that were read are not there any more: what no epoch had read is lost with them."""
        for topic, number in gone:
            if not self.skipping:
                words = f'{self.what}: there is no topic "{topic}", partition {number} any more; {self.position[topic, number]} was reached'
                raise Invalid(words, hint=f"It was deleted. {GO_ON}")
            del self.position[topic, number]

    def _check_ends(self) -> None:
        """A topic that was made anew begins at 0 again."""
        cut = [place for place, position in self.position.items() if self.ends[place] < position]
        for topic, number in cut:
            if not self.skipping:
                end, position = self.ends[topic, number], self.position[topic, number]
                words = f'{self.what}: topic "{topic}", partition {number} ends at {end}, and {position} was reached'
                raise Invalid(words, hint=f"The topic was made anew or cut. {GO_ON}")
        self.position |= self.brokers.earliest(cut)

    def reopen(self, slice: Slice, unreadable: Mapping[str, str]) -> Slice:
        """Without what was lost before it was read, if that is to be passed over."""
        if not unreadable or not self.skipping:
            return slice
        first = self._firsts(slice)
        last = self.brokers.latest(first)
        kept = list[list[Any]]()
        for topic, number, start, end in slice["ranges"]:
            whole = last.get((topic, number), 0) >= end  # else the topic was made anew
            begin = max(start, first.get((topic, number), end)) if whole else end
            kept.append([topic, number, min(begin, end), end])
        return {"ranges": kept}

    def _firsts(self, slice: Slice) -> Offsets:
        """Where the partitions begin, of those that are still there."""
        places = [(topic, number) for topic, number, start, end in slice["ranges"] if end > start]
        try:
            return self.brokers.earliest(places)
        except NotThere:
            found = self.brokers.partitions({topic for topic, _ in places})
            there = [(topic, number) for topic, number in places if number in found.get(topic, ())]
            if len(there) == len(places):
                raise
            return self.brokers.earliest(there)

    def _ranges(self, slice: Slice) -> list[Range]:
        """What there is to read, after checking that it is still there."""
        first, ranges = self._firsts(slice), [(topic, number, start, end) for topic, number, start, end in slice["ranges"] if end > start]
        for topic, number, start, end in ranges:
            gone = min(first.get((topic, number), end), end)
            if start < gone:
                words = f'{self.what}: offsets {start} to {gone - 1} of topic "{topic}", partition {number} are gone'
                hint = "Retention took them, or the topic was deleted: keep records for longer."
                hint += ' onDataLoss="skip" goes on without those that no epoch has read.'
                raise Unreadable(words, hint, files={topic: "gone"})
        return ranges

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        parsed = self.records.frame(spark, self._ranges(slice)).observe(f"{OBSERVED}{self.name}", *self.records.counts())
        return self.records.rows(parsed).where(F.col(UNREAD).isNull()).drop(UNREAD)

    def keys(self) -> tuple[str, ...]:
        return self.key

    def rejects(self, slice: Slice) -> int:
        return 0

    def rejected(self, spark: SparkSession, slice: Slice, epoch: Epoch) -> DataFrame:
        if self.values is None:
            return spark.createDataFrame([], f"{SCHEMA}, {DIFF} bigint")
        bad = self.records.frame(spark, self._ranges(slice), PLACE).where(F.col(UNREAD).isNotNull())
        bad = bad.observe(f"{OBSERVED}{self.name}.rejected.{epoch}", *self.records.counts())
        return self.records.rejected(bad, epoch)

    def events(self, spark: SparkSession, slice: Slice) -> DataFrame:
        parsed = self.records.frame(spark, self._ranges(slice), self._placed)
        return self.records.events(parsed.observe(f"{OBSERVED}{self.name}", *self.records.counts()))

    @property
    def _placed(self) -> tuple[str, ...]:
        """What is needed of a record to say where it is, and which row it removes: without a schema it is there."""
        return () if self.values is None else (*PLACE, *(("key",) if self.key else ()))

    def table(self, slice: Slice) -> pa.Table | None:
        """Without a schema rows are what they are."""
        found = None if self.values is not None else self.records.table(self._ranges(slice), len(slice["ranges"]))
        return None if found is None else found.append_column(DIFF, pa.array(np.ones(len(found), np.int64)))

    def shaped(self) -> Shaped:
        records = self.records
        return Shaped(
            records.schema(),
            lambda slice: records.table(self._ranges(slice), len(slice["ranges"])),
            lambda rows: records.rows(records.parsed(rows)),
            unfit=UNREAD,
        )

    def shaped_events(self) -> Shaped:
        records, placed = self.records, self._placed
        return Shaped(
            records.schema(placed),
            lambda slice: records.table(self._ranges(slice), len(slice["ranges"]), placed),
            lambda rows: records.events(records.parsed(rows, placed)),
        )

    def weight(self, slice: Slice) -> int:
        return BYTES * int(sum(end - start for _, _, start, end in slice["ranges"]))

    def together(self, slices: Sequence[Slice]) -> Slice:
        return {"ranges": [range for slice in slices for range in slice["ranges"]]}

    def lag(self) -> dict[str, int]:
        """How many offsets each partition has that no epoch has taken, as of the last look."""
        known = {partition: start for partition, start in self.position.items() if partition in self.ends}
        return {f"{topic}-{number}": self.ends[topic, number] - start for (topic, number), start in known.items()}

    def close(self) -> None:
        self.records.close()
        self.brokers.close()


def limited(position: Offsets, ends: Offsets, most: int) -> Offsets:
    """How far an epoch goes in each partition: all get a share of the limit in proportion to what they have."""
    waiting = {partition: ends[partition] - start for partition, start in position.items()}
    total = sum(waiting.values())
    if total <= most:
        return {partition: ends[partition] for partition in position}
    return {partition: start + -(-waiting[partition] * most // total) for partition, start in position.items()}
