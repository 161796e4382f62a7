"""Reading ranges of offsets of Kafka in a task, into Arrow.

A range is read until an offset at or behind its end is seen, or the reader stands there: offsets have gaps (markers of transactions,
compaction), so nothing is inferred from how many there could be, and a range that ends in a marker waits for nothing.

Readers are kept, by a worker from task to task: the next range of a partition mostly begins where the last one ended, and has been fetched
by then.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

import pyarrow as pa

from nosync.clients.kafka import library
from nosync.model.errors import Unavailable, Unreadable
from nosync.sources.avro_task import AvroTask

Range = tuple[str, int, int, int]
"""Topic, partition, and the offsets from where to before which."""

READING = "a task that reads Kafka"
BATCH = 20_000
SILENCE = 20.0  # seconds without a word from the broker
GONE = ("TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC")
LOST = ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")
READERS = 32  # kept in a worker
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
COLUMNS: dict[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "key": (pa.binary(), methodcaller("key")),
    "value": (pa.binary(), methodcaller("value")),
    "topic": (pa.string(), methodcaller("topic")),
    "partition": (pa.int32(), methodcaller("partition")),
    "offset": (pa.int64(), methodcaller("offset")),
    "timestamp": (pa.int64(), lambda message: message.timestamp()[1] * 1000),
    "timestampType": (pa.int32(), lambda message: message.timestamp()[0] - 1),
    "headers": (HEADERS, lambda message: _headers(message.headers())),
}
TIME = pa.timestamp("us", "UTC")


def _headers(found: Any) -> list[dict[str, Any]] | None:
    return None if found is None else [{"key": name, "value": value} for name, value in found]


@dataclass
class Reader:
    """A consumer of one partition, and where it stands. `ahead`: messages that it has given and nobody has asked for yet.

    The last offset of a range may be a message, which ends it, or a marker, behind which something else has to be heard. What a consumer
    that was used before says of lost records may be about the place where it stood: a new one is asked then.
    """

    config: dict[str, Any] = field(repr=False)
    partition: Any
    consumer: Any = None
    used: bool = False
    position: int = -1
    ahead: list[Any] = field(default_factory=list)

    def _assign(self, start: int) -> None:
        self.partition.offset, self.ahead, self.used = start, [], self.consumer is not None
        self.consumer = self.consumer or library(READING).Consumer(self.config)
        self.consumer.assign([self.partition])

    def close(self) -> None:
        if self.consumer is not None:
            self.consumer.close()
        self.consumer, self.position = None, -1

    def messages(self, start: int, end: int, eof: int) -> Iterator[list[Any]]:
        """Those of a range, in pieces."""
        if self.position != start:
            self._assign(start)
        self.position, heard, begun = -1, time.monotonic(), False  # unknown while we are at it
        while True:
            found = self.ahead or self._next()
            self.ahead = []
            if found and _inside(found, end):
                begun, heard = True, time.monotonic()
                yield found
                continue
            taken, ended = list[Any](), False
            for place, message in enumerate(found):
                error = message.error()
                heard = time.monotonic() if error is None or error.code() == eof else heard
                if error is not None and error.name() in LOST and self.used and not begun and not taken:
                    self.close()
                    self._assign(start)
                    break
                elif error is not None and error.code() != eof:
                    self._failed(error, start)
                elif message.offset() >= end:
                    self.ahead, ended = found[place:], True  # ends that were reached are said once
                    break
                elif error is None:
                    taken.append(message)
                    if message.offset() == end - 1:
                        self.ahead, ended = found[place + 1 :], True
                        break
            if taken:
                begun = True
                yield taken
            if ended:
                self.position = end
                return
            if time.monotonic() - heard > SILENCE:
                raise Unavailable(f"Kafka: nothing came of {self._place} for {SILENCE:g} s", hint="It is tried again.")

    def _next(self) -> list[Any]:
        """What has come; a call for many would wait until there are so many."""
        found: list[Any] = self.consumer.consume(BATCH, 0)
        first = None if found else self.consumer.poll(0.5)
        return found if first is None else [first, *self.consumer.consume(BATCH, 0)]

    @property
    def _place(self) -> str:
        return f'topic "{self.partition.topic}", partition {self.partition.partition}'

    def _failed(self, error: Any, start: int) -> None:
        if error.name() in LOST:
            words = f"Kafka: {self._place} has lost what followed offset {start}"
            raise Unreadable(words, files={words: "gone"})
        if error.fatal() or error.name() in GONE:
            raise Unavailable(f"Kafka: {self._place}: {error.str()}", hint="It is tried again.")


def _inside(found: Sequence[Any], end: int) -> bool:
    """Whether all that has come belongs to the range, and does not end it."""
    return all(message.error() is None for message in found) and found[-1].offset() < end - 1


class Readers:
    """Readers by settings and partition: those that were used last are kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Reader] = OrderedDict()

    def of(self, config: dict[str, Any], topic: str, number: int) -> Reader:
        key = (*sorted((name, str(value)) for name, value in config.items()), topic, number)
        found = self._kept.pop(key, None)
        if found is None:
            found = Reader(config, library(READING).TopicPartition(topic, number))
            while len(self._kept) >= READERS:
                self._kept.popitem(last=False)[1].close()
        self._kept[key] = found
        return found

    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()


_readers = Readers()  # those of the worker


@dataclass(frozen=True)
class KafkaTask:
    """Reads the shares whose numbers it is given. Its settings are not shown. `names`: of the columns, if they shall have others;
    `decode`: what makes more columns of values, to come first."""

    config: dict[str, Any] = field(repr=False)
    shares: tuple[tuple[Range, ...], ...]
    columns: tuple[str, ...]
    names: tuple[str, ...] = ()
    decode: AvroTask | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column(0).to_pylist():
                yield from self.read(self.shares[share], _readers)

    def read(self, ranges: Sequence[Range], readers: Readers) -> Iterator[pa.RecordBatch]:
        end_of_partition = library(READING).KafkaError._PARTITION_EOF
        for topic, number, start, end in ranges:
            for messages in readers.of(self.config, topic, number).messages(start, end, end_of_partition):
                yield self._batch(messages)

    def _batch(self, messages: Sequence[Any]) -> pa.RecordBatch:
        arrays, names = ([], []) if self.decode is None else self.decode([message.value() for message in messages])
        return pa.RecordBatch.from_arrays([*arrays, *arrow(messages, self.columns)], names=[*names, *(self.names or self.columns)])


def arrow(messages: Sequence[Any], columns: Sequence[str]) -> list[pa.Array]:
    arrays = []
    for name in columns:
        type, value = COLUMNS[name]
        array = pa.array(list(map(value, messages)), type)
        arrays.append(array.cast(TIME) if name == "timestamp" else array)
    return arrays


def shared(ranges: Sequence[Range], tasks: int, least: int) -> tuple[tuple[Range, ...], ...]:
    """The ranges in at most so many shares of about the same size, none smaller than `least` without need."""
    total = sum(end - start for _, _, start, end in ranges)
    count = max(1, min(tasks, len(ranges), -(-total // least)))
    shares: list[list[Range]] = [[] for _ in range(count)]
    sizes = [0] * count
    for range_ in sorted(ranges, key=lambda found: found[2] - found[3]):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(range_)
        sizes[smallest] += range_[3] - range_[2]
    return tuple(tuple(share) for share in shares)
