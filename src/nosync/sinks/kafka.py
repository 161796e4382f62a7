"""A topic of Kafka that gets a query's changes: one transaction an epoch, and the number of the epoch in it.

The number is the committed offset of a consumer group of ours, `nosync.FLOW.SINK`, for partition 0 of the topic; its metadata say whose
it is: `{"flow", "sink", "history", "generation"}`. Records and number are committed together or not at all, so a run that does not know
whether an epoch has arrived asks the broker. The transactional id, by flow and sink, lets the broker itself shut earlier runs out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

import pyarrow as pa

from nosync.clients.kafka import Brokers, library, settings
from nosync.model import arguments
from nosync.model.absent import connector
from nosync.model.arguments import did_you_mean
from nosync.model.errors import Failed, Invalid, NosyncError, Refused, Unavailable
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.run import generation_of
from nosync.model.sink import Changes, Identity, Promise, overtaken
from nosync.sinks.kafka_messages import WAYS, Form, Mode, check, messages

SECONDS = 30.0  # that a broker may take for a step of a transaction
TURN = 1000  # messages after which is heard what became of those before
REPLACED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
DEFAULTS = {
    "linger.ms": 2, "partitioner": "murmur2_random", "transaction.timeout.ms": 60_000, "queue.buffering.max.messages": 500_000,
    "compression.type": "lz4", "delivery.report.only.error": True,
}  # fmt: skip


@arguments.checked(outputMode='Pass mode="changes", "append" or "state".', changes='Pass mode="changes".')
def to_kafka(
    servers: str,
    topic: str,
    key: str | Sequence[str] | None = None,
    value: str | None = None,
    mode: Mode | None = None,
    **options: Any,
) -> "KafkaTopic":
    """Sends a query's changes to a topic, precisely: each epoch is one transaction, which readers of what is committed see whole and once.

    - `mode="state"`, the default with a `key`: an upsert log, fit for compaction. A message is the row as it is now, and has no value
      where the row is gone.
    - `mode="append"`, the default without: rows are only ever added.
    - `mode="changes"`: messages say `{"op": "c" | "u" | "d", "before": ..., "after": ...}`.

    `value` names the column that is the value, as it is; else the value is a JSON object of all columns. `options` are those of librdkafka.
    Needs the extra: pip install 'nosync[kafka]'.

    >>> ns.to_kafka("broker:9092", "spend", key="user").promise.guarantee
    'precise'
    """
    what = f'topic "{topic}" of Kafka'
    if mode is not None and mode not in get_args(Mode):
        hint = f'{did_you_mean(mode, get_args(Mode))}Pass "changes", "append" or "state".'
        raise Invalid(f'ns.to_kafka: mode="{mode}" is not known', hint=hint)
    if mode == "state" and not key:
        raise Invalid(f'{what}: mode="state" needs a key', hint="Pass key=[...]: the columns that make a row its own.")
    if value is not None and mode == "changes":
        raise Invalid(f'{what}: value="{value}" and mode="changes" exclude each other', hint="Leave one out.")
    library(what)
    form = Form((key,) if isinstance(key, str) else tuple(key or ()), value or "", mode or ("state" if key else "append"))
    return KafkaTopic(topic, form, {**DEFAULTS, **settings(servers, options)})


@connector("sink", "to_kafka")
@dataclass(repr=False)
class KafkaTopic:
    """See `to_kafka`. The producer is made when it is first needed, and anew after whatever went wrong: it then asks how far it came."""

    topic: str
    form: Form
    config: dict[str, Any] = field(repr=False)
    generation: int = 0
    identity: Identity | None = None
    done: Epoch = NO_EPOCH
    _producer: Any = None
    _group: Any = None

    def __repr__(self) -> str:
        return f'ns.to_kafka("{self.topic}"{f", key={list(self.form.key)}" if self.form.key else ""})'

    @property
    def what(self) -> str:
        return f'topic "{self.topic}" of Kafka'

    @property
    def promise(self) -> Promise:
        return Promise("precise", "an epoch's messages and its number are one transaction of the broker", "atomic")

    def check_query(self, sink: str, schema: pa.Schema, corrects: Sequence[str]) -> None:
        """Whether the query has the columns, and a key where rows may go."""
        try:
            check(list(schema), self.form, self.what)
        except Failed as error:
            raise Invalid(f'sink "{sink}": {error.message}', hint=error.hint) from None
        if corrects and self.form.mode == "append":
            words = f'sink "{sink}": rows of "{corrects[0]}" may go, and messages of rows that come cannot say which'
            raise Refused(words, hint=WAYS)

    def open(self, run: str, identity: Identity) -> None:
        """A broker that is out of reach now is waited for with the first epoch."""
        self.close()
        self.generation, self.identity = generation_of(run), identity
        self._brokers = Brokers(self.what, self.config)
        with suppress(Unavailable):
            self._claimed()

    @property
    def _name(self) -> str:
        assert self.identity is not None
        return f"nosync.{self.identity.flow}.{self.identity.sink}"

    def _claimed(self) -> Any:
        """A producer whose transactions are the only ones."""
        if self._producer is None:
            if self.topic not in self._brokers.partitions([self.topic]):
                raise Invalid(f"{self.what} is not there", hint="Create it, or correct its name.")
            kafka, config = library(self.what), dict(self.config)
            self._group = kafka.Consumer({**_shared(config), "group.id": self._name, "isolation.level": "read_uncommitted"})
            self._check()
            try:
                producer = kafka.Producer({**config, "transactional.id": f"{self._name}.{self.topic}"})
                producer.init_transactions(SECONDS)
            except kafka.KafkaException as error:
                raise self._failed(error) from None
            self.done = self._check()  # of an earlier run nothing is under way any more
            self._producer = producer
            self._transact(self.done, ())
        return self._producer

    def _check(self) -> Epoch:
        """Up to which epoch the topic has this output; refused where the number is somebody else's.

        What a transaction that is still open would commit is not looked at (to wait for its end would be to wait for its timeout).
        """
        assert self.identity is not None
        kafka = library(self.what)
        try:
            [found] = self._group.committed([kafka.TopicPartition(self.topic, 0)], SECONDS)
        except kafka.KafkaException as error:
            raise self._failed(error) from None
        if found.error is not None:
            raise Unavailable(f"{self.what}: {found.error.str()}", hint="It is tried again.")
        if found.offset < 0:
            return NO_EPOCH
        owner = _owner(found.metadata)
        if owner.get("history") != self.identity.history:
            hint = "Choose another topic, or another name for the flow or the sink."
            raise Invalid(f'sink "{self.identity.sink}": {self.what} has the output of the same flow on another home', hint=hint)
        if int(owner["generation"]) > self.generation:
            raise overtaken(self.what)
        return Epoch(found.offset)

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        if changes.empty:
            return
        try:
            self._claimed()
            if epoch > self.done:
                self._transact(epoch, messages(changes.table(), self.form, self.what))
        except NosyncError:
            self._forget()
            raise

    def _transact(self, epoch: Epoch, content: Any) -> None:
        """The messages and the epoch, or neither."""
        kafka, producer = library(self.what), self._producer
        lost: list[Any] = []

        def failed(error: Any, _: Any) -> None:
            lost.extend([error] if error else ())

        try:
            producer.begin_transaction()
            for number, (key, value) in enumerate(content):
                self._produce(key, value, failed)
                if number % TURN == 0:
                    producer.poll(0)
            if self._unsent() and not lost:  # what follows would wait until the transaction's own timeout
                raise Unavailable(f"{self.what}: no broker takes messages", hint="It is tried again.")
            owner = json.dumps({**asdict(self.identity or Identity("", "", "")), "generation": self.generation})
            place = kafka.TopicPartition(self.topic, 0, epoch, owner)
            producer.send_offsets_to_transaction([place], self._group.consumer_group_metadata(), SECONDS)
            producer.commit_transaction(SECONDS)
        except Failed:
            with suppress(kafka.KafkaException):
                producer.abort_transaction(SECONDS)
            raise
        except kafka.KafkaException as error:
            raise self._failed(error, lost) from None
        except SystemError as error:  # out of a callback
            if not isinstance(error.__cause__, kafka.KafkaException):
                raise
            raise self._failed(error.__cause__, lost) from None
        self.done = epoch

    def _produce(self, key: bytes | None, value: bytes | None, failed: Callable[[Any, Any], None]) -> None:
        while True:
            try:
                self._producer.produce(self.topic, key=key, value=value, on_delivery=failed)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _unsent(self) -> int:
        """How many messages no broker has taken. A call that meets something fatal may raise anything: the next step says what it was."""
        try:
            return int(self._producer.flush(SECONDS))
        except (library(self.what).KafkaException, SystemError):
            return NO_EPOCH

    def _failed(self, error: Exception, lost: Sequence[Any] = ()) -> NosyncError:
        """A message that is too large fails its transaction: what became of it says more."""
        codes = [*lost[:1], error.args[0]]
        if any(code.name() in REPLACED for code in codes):
            return overtaken(self.what)
        if codes[0].name() in ("MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "_MSG_SIZE_TOO_LARGE"):
            return Failed(f"{self.what}: {codes[0].str()}", hint="Make messages smaller, or the topic's max.message.bytes larger.")
        found = self._brokers.failed(error)
        return found if isinstance(found, NosyncError) else Unavailable(f"{self.what}: {found}")

    def _forget(self) -> None:
        """What the producer was at is found out by the next one."""
        self._producer, group, self._group = None, self._group, None
        if group is not None:
            group.close()

    def close(self) -> None:
        self._forget()


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a consumer understands of a producer's settings."""
    mine = {*DEFAULTS, "acks", "batch.size", "batch.num.messages", "enable.idempotence", "retries", "delivery.timeout.ms"}
    return {name: value for name, value in config.items() if name not in mine}


def _owner(metadata: str | None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
