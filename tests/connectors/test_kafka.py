"""Topics of Kafka as sources: every committed record once, whatever gaps, markers, restarts and new partitions there are."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.clients.kafka import Brokers, settings
from nosync.model.errors import Unavailable
from nosync.sources.kafka import limited
from nosync.sources.kafka_records import TASKS
from nosync.sources.kafka_task import KafkaTask, shared
from tests.crash.waiting import until
from tests.servers.kafka import SECRET, USER, Kafka


@pytest.fixture
def topic(kafka_broker: Kafka) -> str:
    return kafka_broker.create(f"t{uuid4().hex[:8]}", 2)


def texts(*values: Any, partition: int = 0) -> list[dict[str, Any]]:
    return [{"value": json.dumps(value) if not isinstance(value, str) else value, "partition": partition} for value in values]


def offsets(broker: Kafka, topic: str, ranges: Sequence[tuple[int, int, int]], isolation: str = "read_committed") -> list[tuple[int, int]]:
    """What a task reads of ranges, as partition and offset."""
    import pyarrow as pa

    config = {**TASKS, **settings(broker.servers, {}), "isolation.level": isolation}
    task = KafkaTask(config, (tuple((topic, *range_) for range_ in ranges),), ("partition", "offset"))
    found = pa.Table.from_batches(task([pa.record_batch({"id": [0]})]), pa.schema([("partition", pa.int32()), ("offset", pa.int64())]))
    return list(zip(*(column.to_pylist() for column in found.columns)))


def test_a_range_is_read_whole_though_its_offsets_have_gaps(kafka_broker: Kafka, topic: str) -> None:
    """0-2 and a marker, 4-5 aborted and a marker, 7-8 and a marker; a transaction that is still open behind."""
    kafka_broker.produce(topic, texts(1, 2, 3), transaction=topic)
    kafka_broker.produce(topic, texts(4, 5), transaction=topic, commit=False)
    kafka_broker.produce(topic, texts(6, 7), transaction=topic)
    everything = [(0, 0), (0, 1), (0, 2), (0, 7), (0, 8)]
    assert offsets(kafka_broker, topic, [(0, 0, 10)]) == everything
    for cut in range(1, 10):
        assert offsets(kafka_broker, topic, [(0, 0, cut), (0, cut, 10)]) == everything
    assert offsets(kafka_broker, topic, [(0, 3, 7), (0, 9, 10), (0, 0, 1)]) == [(0, 0)]
    assert (0, 4) in offsets(kafka_broker, topic, [(0, 0, 10)], "read_uncommitted")


@pytest.mark.parametrize("said", [-1001, -1])
def test_an_answer_without_an_offset_is_no_answer(said: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As librdkafka gives it, without an error, while a broker comes back: not the end of a topic that was made anew."""

    class Answer:
        offset = said

        def result(self, _: float) -> "Answer":
            return self

    class Client:
        def list_offsets(self, asked: Iterable[Any], **_: Any) -> dict[Any, Answer]:
            return {place: Answer() for place in asked}

    monkeypatch.setattr(Brokers, "_client", lambda _: Client())
    brokers = Brokers("Kafka", {})
    for ask in (brokers.latest, brokers.earliest, lambda places: brokers.at(places, 0)):
        with pytest.raises(Unavailable, match='no broker knows the offsets of topic "t", partition 0'):
            ask([("t", 0)])


def test_shares_and_limits_are_in_proportion() -> None:
    ranges = [("t", number, 0, size) for number, size in enumerate((100, 10, 10, 80))]
    assert {sum(end for _, _, _, end in share) for share in shared(ranges, 2, 50)} == {100}
    assert len(shared(ranges, 8, 1000)) == 1
    assert limited({("t", 0): 0, ("t", 1): 5}, {("t", 0): 100, ("t", 1): 6}, 50) == {("t", 0): 50, ("t", 1): 6}


def test_a_topic_is_a_source_over_restarts_and_new_partitions(
    quick: SparkSession, kafka_broker: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nosync.sources.kafka.LOOK_SECONDS", 0.0)
    home = tmp_path / "home"

    def flow() -> ns.Flow:
        flow = ns.Flow("shop", quick)
        source = ns.kafka(kafka_broker.servers, topic, schema="id bigint, price decimal(9,2)", metadata=["partition"])
        orders = flow.source("orders", source)
        flow.view("spend", orders.groupBy("partition").agg(F.sum("price").alias("price"), F.count("*").alias("n")))
        return flow

    def spend(run: ns.Run) -> dict[int, tuple[float, int]]:
        run.processAllAvailable()
        return {row.partition: (float(row.price), row.n) for row in run.view("spend").collect()}

    kafka_broker.produce(topic, texts({"id": 1, "price": 1.5}, {"id": 2, "price": 2}, "nonsense", {"id": "x"}), transaction=topic)
    kafka_broker.produce(topic, texts({"id": 3, "price": 9}), transaction=topic, commit=False)
    with flow().start(home, shards=1) as run:
        assert spend(run) == {0: (3.5, 2)}
        rejected = {(row.raw, row.file) for row in run.view("orders.rejected").collect()}
        assert rejected == {("nonsense", f"{topic}/0/2"), ('{"id": "x"}', f"{topic}/0/3")}
        kafka_broker.grow(topic, 3)
        kafka_broker.produce(topic, [*texts({"price": 4}, partition=1), *texts({"price": 5}, partition=2)])
        until(lambda: spend(run) == {0: (3.5, 2), 1: (4, 1), 2: (5, 1)}, 60, lambda: run.status)  # brokers hear of partitions later
        progress = run.lastProgress
        assert progress is not None and progress["sources"][0]["lag"] == {f"{topic}-0": 0, f"{topic}-1": 0, f"{topic}-2": 0}
    kafka_broker.produce(topic, texts({"price": 7}, partition=2))
    for layer in home.glob("layers/**/*.arrow"):
        layer.unlink()
    with flow().start(home) as run:
        assert spend(run) == {0: (3.5, 2), 1: (4, 1), 2: (12, 2)}
        kafka_broker.kill()
        kafka_broker.start()
        kafka_broker.produce(topic, texts({"price": 1}, partition=2))
        until(lambda: spend(run)[2] == (13, 3), 120, lambda: run.status)


def test_where_reading_begins_and_keys(quick: SparkSession, kafka_broker: Kafka, tmp_path: Path) -> None:
    """By pattern; from the end, a time and offsets; the newest record of a key counts; columns as Spark's own source has them."""
    prefix = uuid4().hex[:6]
    first, second = (kafka_broker.create(f"{prefix}-{name}") for name in "ab")
    sent = [{"value": json.dumps({"id": id, "n": n}), "key": f"{id}", "headers": [("h", b"\x01")]} for id, n in ((1, 1), (2, 2), (1, 3))]
    kafka_broker.produce(first, sent)
    kafka_broker.produce(second, sent[:1])
    flow = ns.Flow("begin", quick)
    plain = {"latest": "latest", "offsets": {first: {0: 2}, second: {0: -1}}, "future": "2999-01-01T00:00:00Z"}
    for name, begin in plain.items():
        rows = flow.source(name, ns.kafka(kafka_broker.servers, pattern=f"{prefix}-.*", startingOffsets=begin, includeHeaders=True))
        flow.view(f"of {name}", rows.select("topic", "offset", F.col("key").cast("string"), F.size("headers").alias("h"), "timestamp"))
    flow.view("newest", flow.source("keyed", ns.kafka(kafka_broker.servers, [first], schema="id int, n int"), key="id"))
    with flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        assert [tuple(row)[:4] for row in run.view("of offsets").collect()] == [(first, 2, "1", 1)]
        assert sorted(tuple(row) for row in run.view("newest").collect()) == [(1, 3), (2, 2)]
        kafka_broker.produce(second, sent[:1])
        run.processAllAvailable()
        for name in ("latest", "future"):
            assert [tuple(row)[:3] for row in run.view(f"of {name}").collect()] == [(second, 1, "1")]


def test_records_that_retention_took_are_an_error_or_passed_over(
    quick: SparkSession, kafka_broker: Kafka, topic: str, tmp_path: Path
) -> None:
    from confluent_kafka import TopicPartition

    def flow(onDataLoss: Any) -> ns.Flow:
        flow = ns.Flow("lost", quick)
        flow.view("v", flow.source("s", ns.kafka(kafka_broker.servers, topic, onDataLoss=onDataLoss)).select("offset"))
        return flow

    kafka_broker.produce(topic, texts(0, 1))
    home = tmp_path / "home"
    with flow("fail").start(home, shards=1) as run:
        run.processAllAvailable()
    kafka_broker.produce(topic, texts(2, 3, 4))
    [gone] = kafka_broker.admin().delete_records([TopicPartition(topic, 0, 4)]).values()
    gone.result(30)
    with pytest.raises(ns.NosyncError, match=r"offsets 2 to 3 of topic .* are gone"), flow("fail").start(home) as run:
        run.processAllAvailable()
    with flow("skip").start(home) as run:
        run.processAllAvailable()
        assert sorted(row.offset for row in run.view("v").collect()) == [0, 1, 4]


def test_a_compacted_topic_is_a_table_whose_rows_go_with_their_tombstones(quick: SparkSession, kafka_broker: Kafka, tmp_path: Path) -> None:
    """As `ns.to_kafka` writes it. What cannot be understood removes nothing, and a row that is not there takes none with it."""
    one, two = (kafka_broker.create(f"t{uuid4().hex[:8]}") for _ in range(2))
    both = {name: json.dumps({"a": name, "b": 1}) for name in "xy"}

    def send(topic: str, *pairs: tuple[str, Any]) -> None:
        kafka_broker.produce(topic, [{"key": key, "value": None if value is None else json.dumps(value)} for key, value in pairs])

    flow = ns.Flow("compacted", quick)
    for name, topic, schema, key in (("by one", one, "id bigint, n int", "id"), ("by two", two, "a string, b int, n int", ["a", "b"])):
        flow.view(f"of {name}", flow.source(name, ns.kafka(kafka_broker.servers, topic, schema=schema, key=key)))
    send(one, ("1", {"id": 1, "n": 1}), ("2", {"id": 2, "n": 2}), ("1", {"id": 1, "n": 3}), ("2", None), ("x", None), ("7", None))
    send(two, *((key, {"a": name, "b": 1, "n": 5}) for name, key in both.items()))
    with flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
        assert [tuple(row) for row in run.view("of by one").collect()] == [(1, 3)]
        send(one, ("1", None), ("3", {"id": 3, "n": 4}))
        send(two, (both["x"], None))
        run.processAllAvailable()
        assert [tuple(row) for row in run.view("of by one").collect()] == [(3, 4)]
        assert [tuple(row) for row in run.view("of by two").collect()] == [("y", 1, 5)]
        reasons = {row.file: row.reason for row in run.view("by one.rejected").collect()}
        assert reasons[f"{one}/0/4"] == "no value" and len(reasons) == 2


@pytest.mark.parametrize("wrong", ["topic", "password", "option", "begin", "both"])
def test_what_cannot_be_read_says_so_at_declaration(quick: SparkSession, kafka_broker: Kafka, topic: str, wrong: str) -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": SECRET}
    guarded = f"127.0.0.1:{kafka_broker.guarded}"
    cases: dict[str, tuple[str, dict[str, Any], str]] = {
        "topic": (guarded, {"topics": "nowhere", **login}, 'no topic "nowhere"'),
        "password": (guarded, {"topics": topic, **login, "sasl.password": "secret-word"}, "the broker refuses"),
        "option": (guarded, {"topics": topic, "no.such.option": 1}, "no.such.option"),
        "begin": (guarded, {"topics": topic, "startingOffsets": "yesterday"}, "yesterday"),
        "both": (guarded, {"topics": topic, "pattern": "t.*"}, "by name, or by a pattern"),
    }
    servers, given, words = cases[wrong]
    with pytest.raises(ns.Invalid, match=words) as failure:
        ns.Flow("wrong", quick).source("s", ns.kafka(servers, **given))
    assert "word" not in str(failure.value).replace("password or the mechanism", "").replace("username or password", "")
