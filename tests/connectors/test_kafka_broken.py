"""What goes wrong with topics and brokers: each is a clear error, waited for, or passed over where that was asked for; nothing hangs."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.bridge.kept_plans import TooMany
from nosync.journal.taken import Taken
from nosync.model.errors import Unreadable
from nosync.model.source import Slice
from nosync.sources import kafka_records
from nosync.sources.kafka import Kafka as Source
from tests.connectors.rows import changes
from tests.connectors.test_to_kafka import insist, opened
from tests.crash.waiting import until
from tests.servers.kafka import SECRET, USER, Kafka

LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}


@pytest.fixture
def topic(kafka_broker: Kafka) -> str:
    return kafka_broker.create(f"t{uuid4().hex[:8]}")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Source]]:
    """Sources as a run has them: without Spark, and looking for topics each time."""
    monkeypatch.setattr("nosync.sources.kafka.LOOK_SECONDS", 0.0)
    made: list[Source] = []

    def start(*given: Any, **more: Any) -> Source:
        source = ns.kafka(*given, **more)
        made.append(source)
        source.declare("s", None)  # type: ignore[arg-type]  # which says what JSON is, and nothing else
        nothing: Any = ()
        source.start(Path(), Taken(lambda: iter(()), None, nothing))
        return source

    yield start
    for source in made:
        source.close()


def delete(broker: Kafka, topic: str) -> None:
    broker.admin().delete_topics([topic])[topic].result(30)
    until(lambda: topic not in broker.admin().list_topics(timeout=10).topics, 30)


def taken(source: Source) -> Slice:
    """The next slice, as soon as there is one."""
    found: list[Slice] = []

    def look() -> bool:
        with suppress(ns.Unavailable):
            found.extend(filter(None, [source.available()]))
        return bool(found)

    until(look, 60)
    return found[0]


def values(source: Source, slice: Slice) -> list[Any]:
    table = source.table(slice)
    assert table is not None
    return [None if value is None else value.decode() for value in table.column("value").to_pylist()]


def failure(source: Source, seconds: float = 60.0) -> ns.Invalid:
    """What ends the run, once whoever asks has heard of it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            source.available()
        except ns.Unavailable:
            pass
        except ns.Invalid as error:
            return error
    raise AssertionError("nothing is wrong")


def send(broker: Kafka, topic: str, *texts: Any) -> None:
    broker.produce(topic, [{"value": text} for text in texts])


def test_an_empty_topic_is_waited_for_and_values_may_be_missing_or_huge(
    kafka_broker: Kafka, started: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka_broker.create(f"t{uuid4().hex[:8]}", max_message_bytes="9000000")
    source = started(kafka_broker.servers, topic, **{"message.max.bytes": 9_000_000})
    assert source.available() is None
    send(kafka_broker, topic, "a", None, "", "b")
    assert values(source, taken(source)) == ["a", None, "", "b"]
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka_broker.servers, "message.max.bytes": 9_000_000})
    producer.produce(topic, value="x" * 8_000_000)
    producer.produce(topic, value="y")
    assert producer.flush(60) == 0
    slice = taken(source)
    assert [len(value) for value in values(source, slice)] == [8_000_000, 1]
    monkeypatch.setattr(kafka_records, "HELD_BYTES", 1_000_000)
    with pytest.raises(TooMany):
        source.table(slice)


def test_a_topic_that_is_deleted_ends_the_run_or_is_passed_over(kafka_broker: Kafka, started: Callable[..., Source]) -> None:
    name = uuid4().hex[:8]
    first, second = (kafka_broker.create(f"{name}-{which}") for which in "ab")
    named = started(kafka_broker.servers, [first, second])
    patterned = started(kafka_broker.servers, pattern=f"{name}-.*")
    skipping = started(kafka_broker.servers, pattern=f"{name}-.*", onDataLoss="skip")
    for topic in (first, second):
        send(kafka_broker, topic, "1", "2", "3")
    for source in (named, patterned, skipping):
        assert values(source, taken(source)) == ["1", "2", "3"] * 2
    delete(kafka_broker, first)
    send(kafka_broker, second, "4")
    for source in (named, patterned):
        assert f'there is no topic "{first}", partition 0 any more; 3 was reached' in failure(source).message
    assert values(skipping, taken(skipping)) == ["4"]
    kafka_broker.create(first)
    send(kafka_broker, first, "again")
    assert values(skipping, taken(skipping)) == ["again"]


def test_a_topic_that_is_made_anew_is_noticed_or_read_from_its_beginning(
    kafka_broker: Kafka, topic: str, started: Callable[..., Source]
) -> None:
    strict, skipping = started(kafka_broker.servers, topic), started(kafka_broker.servers, topic, onDataLoss="skip")
    send(kafka_broker, topic, "1", "2", "3")
    slices = [taken(source) for source in (strict, skipping)]
    delete(kafka_broker, topic)
    for source in (strict, skipping):
        with pytest.raises(Unreadable, match="offsets 0 to 2 of topic"):
            source.table(slices[0])
    assert strict.reopen(slices[0], {topic: "gone"}) == slices[0]
    assert values(skipping, skipping.reopen(slices[1], {topic: "gone"})) == []
    kafka_broker.create(topic)
    send(kafka_broker, topic, "new")
    assert "ends at 1, and 3 was reached" in failure(strict).message
    assert values(skipping, skipping.reopen(slices[1], {topic: "gone"})) == []
    assert values(skipping, taken(skipping)) == ["new"]


@pytest.mark.connectors
def test_what_is_wrong_with_a_broker_that_was_away_is_said_when_it_answers(
    kafka_broker: Kafka, topic: str, started: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nosync.clients.kafka.PATIENCE", 1.0)
    guarded = f"127.0.0.1:{kafka_broker.guarded}"
    kafka_broker.kill()
    right = started(guarded, topic, **LOGIN, **{"sasl.password": SECRET})
    wrong = started(guarded, topic, **LOGIN, **{"sasl.password": "secret-word"})
    nowhere = started(kafka_broker.servers, "nowhere")
    sink = opened(kafka_broker, "nowhere")
    for source in (right, wrong, nowhere):
        with pytest.raises(ns.Unavailable, match="no broker answers"):
            source.available()
    kafka_broker.start()
    send(kafka_broker, topic, "1")
    assert values(right, taken(right)) == ["1"]
    assert "the broker refuses" in failure(wrong).message and "secret" not in str(failure(wrong))
    assert 'there is no topic "nowhere"' in failure(nowhere).message
    with pytest.raises(ns.Invalid, match="is not there"):
        insist(lambda: sink.deliver(1, changes(1, {"k": pa.string()}, ("a", 1))))


def test_a_sink_whose_topic_takes_no_such_message_or_is_deleted_says_so(
    kafka_broker: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nosync.sinks.kafka.SECONDS", 5.0)
    columns = {"k": pa.string(), "text": pa.string()}
    small = kafka_broker.create(f"t{uuid4().hex[:8]}", max_message_bytes="1000")
    sink = opened(kafka_broker, small, identity=ns.Identity(small, "out", "1.first"), **{"compression.type": "none"})
    sink.deliver(1, changes(1, columns, ("a", "x", 1)))
    with pytest.raises(ns.Failed, match=r"(?i)large") as failed:
        sink.deliver(2, changes(2, columns, ("a", "x", -1), ("a", "x" * 5000, 1), ("b", "y", 1)))
    assert "max.message.bytes" in str(failed.value.hint)
    sink.deliver(2, changes(2, columns, ("b", "y", 1)))
    assert [json.loads(message.value())["k"] for message in kafka_broker.consume(small)] == ["a", "b"]
    delete(kafka_broker, small)
    with pytest.raises(ns.Invalid, match="is not there"):
        insist(lambda: sink.deliver(3, changes(3, columns, ("c", "z", 1))))
    sink.close()


def test_an_epoch_that_is_too_large_to_be_held_is_read_by_tasks(
    quick: SparkSession, kafka_broker: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_records, "HELD_BYTES", 1000)
    flow = ns.Flow("large", quick)
    flow.source("s", ns.kafka(kafka_broker.servers, topic, schema="id int, text string"))
    flow.sql("create view v as select id, length(text) as size from s")
    with flow.start(tmp_path / "home", shards=1) as run:
        for id, size in ((1, 10), (2, 5000)):
            send(kafka_broker, topic, json.dumps({"id": id, "text": "x" * size}))
            run.processAllAvailable()
        assert sorted(tuple(row) for row in run.view("v").collect()) == [(1, 10), (2, 5000)]
        assert [progress["way"] for progress in run.recentProgress] == ["narrow", "wide"]
