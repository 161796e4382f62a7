"""A topic of Kafka as a sink: each epoch is one transaction, and comes once, whatever is killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import nosync as ns
from nosync.sinks.kafka import KafkaTopic
from nosync.sinks.kafka_messages import Form, messages
from tests.connectors.rows import IDENTITY, changes
from tests.servers.kafka import Kafka

TOTALS = {"k": pa.string(), "n": pa.int64()}
FIRST = changes(1, TOTALS, ("a", 1, 1), ("b", 2, 1))
SECOND = changes(2, TOTALS, ("a", 1, -1), ("a", 5, 1), ("b", 2, -1))


@pytest.fixture
def topic(kafka_broker: Kafka) -> str:
    return kafka_broker.create(f"t{uuid4().hex[:8]}")


def opened(broker: Kafka, topic: str, run: str = "1.a", identity: ns.Identity = IDENTITY, **more: Any) -> KafkaTopic:
    sink = ns.to_kafka(broker.servers, topic, key="k", **more)
    sink.open(run, identity)
    return sink


def found(broker: Kafka, topic: str) -> list[tuple[bytes | None, Any]]:
    return [(message.key(), None if message.value() is None else json.loads(message.value())) for message in broker.consume(topic)]


def insist(deliver: Callable[[], None], seconds: float = 120.0) -> None:
    """As a run does while a target is not available."""
    end = time.monotonic() + seconds
    while True:
        try:
            return deliver()
        except ns.Unavailable:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_an_epoch_that_was_committed_is_not_sent_again(kafka_broker: Kafka, topic: str) -> None:
    """Also by a run that does not know: the one before was killed before it could record what it had delivered."""
    name = f"{uuid4().hex[:6]}"
    identity = ns.Identity(name, "out", "1.first")
    sink = opened(kafka_broker, topic, identity=identity)
    sink.deliver(1, FIRST)
    sink.deliver(2, SECOND)
    sink.deliver(2, SECOND)
    expected = [(b"a", {"k": "a", "n": 1}), (b"b", {"k": "b", "n": 2}), (b"a", {"k": "a", "n": 5}), (b"b", None)]
    assert found(kafka_broker, topic) == expected
    again = opened(kafka_broker, topic, "2.b", identity)
    again.deliver(1, FIRST)
    again.deliver(2, SECOND)
    again.deliver(3, changes(3, TOTALS, ("c", 3, 1)))
    assert found(kafka_broker, topic) == [*expected, (b"c", {"k": "c", "n": 3})]
    with pytest.raises(ns.Fenced):
        sink.deliver(3, changes(3, TOTALS, ("x", 3, 1)))
    with pytest.raises(ns.Fenced):
        opened(kafka_broker, topic, "1.a", identity)
    with pytest.raises(ns.Invalid, match="another home"):
        opened(kafka_broker, topic, "3.c", ns.Identity(name, "out", "1.other"))
    again.deliver(4, changes(4, TOTALS, ("c", 3, -1)))  # the refused ones have not shut it out
    assert found(kafka_broker, topic)[-1] == (b"c", None)
    again.close()


KILLED = """
import os, sys
import pyarrow as pa
import nosync as ns
from tests.connectors.rows import changes
servers, topic, flow, moment = sys.argv[1:]
sink = ns.to_kafka(servers, topic, key="k")
sink.open("1.a", ns.Identity(flow, "out", "1.first"))
totals = {"k": pa.string(), "n": pa.int64()}
sink.deliver(1, changes(1, totals, ("a", 1, 1)))
producer = sink._producer
if moment == "before":
    class Dying:
        def __getattr__(self, name):
            if name == "commit_transaction":
                producer.poll(1.0)
                os._exit(9)
            return getattr(producer, name)
    sink._producer = Dying()
sink.deliver(2, changes(2, totals, ("a", 1, -1), ("a", 2, 1)))
os._exit(9)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_is_killed_around_its_commit_loses_and_repeats_nothing(kafka_broker: Kafka, topic: str, moment: str) -> None:
    flow = uuid4().hex[:6]
    command = [sys.executable, "-c", KILLED, kafka_broker.servers, topic, flow, moment]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    sink = opened(kafka_broker, topic, "2.b", ns.Identity(flow, "out", "1.first"))
    assert sink.done == {"before": 1, "after": 2}[moment]
    sink.deliver(2, changes(2, TOTALS, ("a", 1, -1), ("a", 2, 1)))
    assert found(kafka_broker, topic) == [(b"a", {"k": "a", "n": 1}), (b"a", {"k": "a", "n": 2})]
    sink.close()


@pytest.mark.connectors
def test_a_broker_that_is_killed_is_waited_for(kafka_broker: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from nosync.clients import kafka as client
    from nosync.sinks import kafka as module

    monkeypatch.setattr(module, "SECONDS", 2.0)
    monkeypatch.setattr(client, "PATIENCE", 2.0)
    identity = ns.Identity(uuid4().hex[:6], "out", "1.first")
    sink = opened(kafka_broker, topic, identity=identity)
    sink.deliver(1, FIRST)
    kafka_broker.kill()
    with pytest.raises(ns.Unavailable, match=topic):
        sink.deliver(2, SECOND)
    later = opened(kafka_broker, topic, "2.b", identity)  # a start does not wait for the broker
    kafka_broker.start()
    monkeypatch.setattr(module, "SECONDS", 30.0)
    insist(lambda: later.deliver(2, SECOND))
    assert len(found(kafka_broker, topic)) == 4
    later.close()


def test_what_is_wrong_is_said_at_once(kafka_broker: Kafka, topic: str) -> None:
    with pytest.raises(ns.Invalid, match="is not there"):
        opened(kafka_broker, "nowhere")
    sink = opened(kafka_broker, topic, identity=ns.Identity(uuid4().hex[:6], "out", "1.first"))
    large = changes(1, TOTALS | {"text": pa.string()}, ("a", 1, "x" * 900_000, 1))
    with pytest.raises(ns.Failed, match="does not tell the rows"):
        sink.deliver(1, changes(1, TOTALS, ("a", 1, 1), ("a", 2, 1)))
    assert found(kafka_broker, topic) == []
    sink.deliver(1, large)
    assert len(found(kafka_broker, topic)) == 1
    sink.close()


def test_messages_of_each_form() -> None:
    table = changes(1, TOTALS, ("a", 1, -1), ("a", 2, 1), ("b", 3, -1), ("c", 4, 1)).table()
    assert list(messages(table, Form(("k",), "k", "state"), "t")) == [(b"a", b"a"), (b"b", None), (b"c", b"c")]
    changed = [(key, json.loads(value or b"")) for key, value in messages(table, Form(("k", "n"), mode="changes"), "t")]
    assert changed[0] == (b'{"k":"a","n":1}', {"op": "d", "before": {"k": "a", "n": 1}, "after": None})
    [(_, first), _, _] = messages(table, Form(("k",), mode="changes"), "t")
    assert json.loads(first or b"") == {"op": "u", "before": {"k": "a", "n": 1}, "after": {"k": "a", "n": 2}}
    with pytest.raises(ns.Failed, match="cannot say which"):
        list(messages(table, Form(), "t"))
    with pytest.raises(ns.Failed, match="not text or bytes"):
        list(messages(table, Form(("k",), "n", "state"), "t"))
    assert len(list(messages(changes(1, TOTALS, ("a", 1, 3)).table(), Form(), "t"))) == 3
    came = changes(1, TOTALS, ("a", 1, 1), ("a", 2, 1)).table()
    assert list(messages(came, Form(("k",), "k"), "t")) == [(b"a", b"a"), (b"a", b"a")]
