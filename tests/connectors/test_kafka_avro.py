"""A topic of Avro with a registry: writers of several schemas, poison, and a registry that goes away, through a whole flow."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from tests.crash.waiting import until
from tests.servers.kafka import Kafka
from tests.servers.registry import registry
from tests.sources.test_avro import logical, record, written

PRICE = ("price", logical("bytes", "decimal", precision=9, scale=2))
FIRST = record(("id", "long"), PRICE)
SECOND = record(("note", ["null", "string"], {"default": None}), PRICE, ("id", "int"))
READER = record(("id", "long"), PRICE, ("offset", "string", {"default": "none"}))


def test_a_topic_of_avro_is_a_source_through_a_registry_that_goes_away(
    quick: SparkSession, kafka_broker: Kafka, tmp_path: Path
) -> None:
    """A field has the name of a column of the record: neither is taken for the other."""
    def orders(schema: Any, number: int, *pairs: tuple[int, str]) -> list[dict[str, Any]]:
        return [{"value": value} for value in written(schema, *({"id": id, "price": Decimal(p)} for id, p in pairs), number=number)]

    topic = kafka_broker.create(f"t{uuid4().hex[:8]}")
    with registry() as server:
        server.register(1, FIRST)
        file = tmp_path / "order.avsc"
        file.write_text(json.dumps(READER))
        flow = ns.Flow("avro", quick)
        read: dict[str, Any] = {"schema": str(file), "registry": server.address}
        rows = flow.source("orders", ns.kafka(kafka_broker.servers, topic, **read, metadata=["timestamp"]))
        flow.view("spend", rows.groupBy("id", "offset").agg(F.sum("price").alias("price"), F.count("timestamp").alias("n")))
        keyed = flow.source("keyed", ns.kafka(kafka_broker.servers, topic, **read), key="id")
        flow.view("newest", keyed.select("id", "price"))
        good = orders(FIRST, 1, (1, "1.50"), (2, "2.00"), (1, "0.25"))
        poison = {"value": b"\0\0\0\0\x01\x05"}
        kafka_broker.produce(topic, [*good, poison, {"value": b"{}"}, {"key": b"k", "value": None}])
        with flow.start(tmp_path / "home", shards=1) as run:
            run.processAllAvailable()
            found = {(row.id, row.offset): (str(row.price), row.n) for row in run.view("spend").collect()}
            assert found == {(1, "none"): ("1.75", 2), (2, "none"): ("2.00", 1)}
            for name in ("orders", "keyed"):
                rejected = {row.file: (row.raw, row.reason) for row in run.view(f"{name}.rejected").collect()}
                assert set(rejected) == {f"{topic}/0/{offset}" for offset in (3, 4, 5)}
                assert rejected[f"{topic}/0/4"] == (b"{}".hex(), "it does not begin with the number of a schema")
                assert rejected[f"{topic}/0/3"][0] == "000000000105" and rejected[f"{topic}/0/5"][1] == "no value"
            server.answers_with = 503
            server.register(2, SECOND)
            kafka_broker.produce(topic, orders(SECOND, 2, (1, "10.00")))
            until(lambda: "HTTP 503" in str(run.status), 60, lambda: run.status)
            server.answers_with = 0
            newest = {(1, "10.00"), (2, "2.00")}
            until(lambda: {(row.id, str(row.price)) for row in run.view("newest").collect()} == newest, 60, lambda: run.status)
            assert {row.n for row in run.view("spend").collect() if row.id == 1} == {3}
