"""Kafka, through confluent-kafka: settings, what its errors mean, topics and offsets as the driver sees them.

Settings go to librdkafka as they are; they may hold passwords, and are never shown.
"""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from nosync.model.errors import Invalid, Unavailable
from nosync.model.extras import needed

PATIENCE = 5.0  # seconds that a broker may take to answer
TURNS = 5  # in which a broker that refuses is heard
NOTHING_LATER = -1  # the offset of a time after the last message
Partition = tuple[str, int]
Offsets = dict[Partition, int]
SASL_FAILED = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED")
REFUSING = ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID")
FOR_GOOD = tuple(f"{sort}_AUTHORIZATION_FAILED" for sort in REFUSING)
UNKNOWN = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID")


class NotThere(Unavailable):
    """A broker does not know a topic or a partition: it was deleted, or the broker has yet to hear of it."""


def library(what: str) -> Any:
    return needed("confluent_kafka", "kafka", what)


def settings(servers: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """For any client: quiet, and what the user has set. Spark's prefix of such options may stay."""
    given = {name.removeprefix("kafka."): value for name, value in options.items()}
    return {"bootstrap.servers": servers, "log_level": 0, "client.id": "nosync", **given}


class Brokers:
    """What the driver asks of a cluster: topics and offsets. Connected when it is first asked; one call at a time."""

    def __init__(self, what: str, config: Mapping[str, Any], isolation: str = "read_committed") -> None:
        self.what, self.isolation = what, isolation
        self._config = dict(config)
        self._lock = threading.RLock()
        self._admin: Any = None
        self._refused = ""

    def _client(self) -> Any:
        with self._lock:
            if self._admin is None:
                library(self.what)
                admin = needed("confluent_kafka.admin", "kafka", self.what)
                try:
                    self._admin = admin.AdminClient({**self._config, "error_cb": self._met})
                except Exception as error:
                    raise Invalid(f"{self.what}: {_words(error)}", hint="The options are those of librdkafka.") from None
            return self._admin

    def _met(self, error: Any) -> None:
        """librdkafka goes on trying whatever a broker says; this remembers that it said no."""
        if error.name() in SASL_FAILED:
            self._refused = str(error.str())

    def failed(self, error: Exception) -> Exception:
        """What to raise for an error of the client."""
        kafka = library(self.what)
        self._client().poll(0)
        code = error.args[0] if isinstance(error, kafka.KafkaException) and error.args else None
        name = code.name() if isinstance(code, kafka.KafkaError) else ""
        if self._refused:
            words, self._refused = f"{self.what}: the broker refuses: {self._refused}", ""
            return Invalid(words, hint="Correct the user, the password or the mechanism.")
        if name in FOR_GOOD:
            return Invalid(f"{self.what}: {_words(error)}", hint="Give the user the right to it.")
        if name in UNKNOWN:
            return NotThere(f"{self.what}: {_words(error)}", hint="It is asked again.")
        return Unavailable(f"{self.what}: no broker answers: {_words(error)}", hint="It is asked again.")

    def partitions(self, topics: Iterable[str] | None) -> dict[str, list[int]]:
        """Of these topics, or of all: the numbers of their partitions. A topic that is not there is left out; so is, of all, one that the
        user may not see. `Unavailable` where a broker cannot say it now."""
        kafka = library(self.what)
        found: Any = None
        for turn in range(1, TURNS + 1):
            try:
                found = self._client().list_topics(timeout=PATIENCE / TURNS).topics
                break
            except kafka.KafkaException as error:
                failure = self.failed(error)
                if turn == TURNS or not isinstance(failure, Unavailable):
                    raise failure from None
        wanted = [name for name in found if not name.startswith("__")] if topics is None else [name for name in topics if name in found]
        for name in wanted:
            said = found[name].error
            if said is not None and said.name() not in UNKNOWN and (topics is not None or said.name() not in FOR_GOOD):
                raise self.failed(kafka.KafkaException(said))
        return {name: sorted(found[name].partitions) for name in wanted if found[name].error is None and found[name].partitions}

    def latest(self, partitions: Iterable[Partition]) -> Offsets:
        """Where they end for a reader of what is committed."""
        return self._offsets(partitions, lambda spec: spec.latest())

    def earliest(self, partitions: Iterable[Partition]) -> Offsets:
        return self._offsets(partitions, lambda spec: spec.earliest())

    def at(self, partitions: Iterable[Partition], millis: int) -> Offsets:
        """The first offset of that time or later; the end where there is none."""
        partitions = list(partitions)
        found, ends = self._offsets(partitions, lambda spec: spec.for_timestamp(millis), at_least=NOTHING_LATER), self.latest(partitions)
        return {partition: offset if offset >= 0 else ends[partition] for partition, offset in found.items()}

    def _offsets(self, partitions: Iterable[Partition], spec: Any, at_least: int = 0) -> Offsets:
        kafka = library(self.what)
        admin = needed("confluent_kafka.admin", "kafka", self.what)
        level = kafka.IsolationLevel.READ_COMMITTED if self.isolation == "read_committed" else kafka.IsolationLevel.READ_UNCOMMITTED
        asked = {kafka.TopicPartition(topic, number): spec(admin.OffsetSpec) for topic, number in partitions}
        if not asked:
            return {}
        try:
            answers = self._client().list_offsets(asked, isolation_level=level, request_timeout=PATIENCE)
            found = {(place.topic, place.partition): int(answer.result(PATIENCE + 5).offset) for place, answer in answers.items()}
        except (kafka.KafkaException, TimeoutError) as error:
            raise self.failed(error) from None
        for (topic, number), offset in found.items():
            if offset < at_least:  # an answer without an error and without an offset: a broker that is just coming back gives such
                words = f'{self.what}: no broker knows the offsets of topic "{topic}", partition {number}'
                raise Unavailable(words, hint="It is asked again.")
        return found

    def close(self) -> None:
        with self._lock:
            self._admin = None


def _words(error: Exception) -> str:
    """The client's words in one line."""
    code: Any = error.args[0] if error.args else error
    text = str(code) if isinstance(code, str | Exception) else str(code.str())
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__
