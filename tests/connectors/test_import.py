"""A stream over a topic goes on as a flow: no record twice, none left out."""

import json
import shutil
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.importing.begin import carry_out, check_accepted, planned
from tests.importing.streams import run
from tests.servers.kafka import Kafka

BEFORE = [{"user": "ann", "price": 1.5}, {"user": "bob", "price": 2.0}, {"user": "ann", "price": 4.0}]
AFTER = [{"user": "bob", "price": 8.0}, {"user": "cleo", "price": 0.5}]


def spend(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.count("*").alias("orders"), F.sum("price").alias("spent"))


def test_offsets_of_a_topic_are_gone_on_from(quick: SparkSession, kafka_broker: Kafka, tmp_path: Path) -> None:
    """The state is that of a query over files; where it says how far it has read, it gets what Spark's source of Kafka writes there."""
    topic, checkpoint = kafka_broker.create(f"t{uuid4().hex[:8]}", 2), tmp_path / "checkpoint"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("".join(json.dumps(row) + "\n" for row in BEFORE))
    run(spend(quick.readStream.schema("user string, price double").json(str(tmp_path / "in"))), checkpoint, "update")
    last = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    last.write_text("\n".join([*last.read_text().splitlines()[:-1], json.dumps({topic: {"0": 2, "1": 1}})]))
    shutil.rmtree(checkpoint / "sources")
    messages = [{"value": json.dumps(row), "partition": number % 2} for number, row in enumerate(BEFORE)]
    kafka_broker.produce(topic, messages)
    flow = ns.Flow("till", quick)
    source = ns.kafka(kafka_broker.servers, topic, schema="user string, price double")
    flow.view("spend", spend(flow.source("orders", source)))
    wanted = planned(flow.program(), checkpoint)
    check_accepted(wanted, False)
    carry_out(wanted, tmp_path / "home", None, False)
    kafka_broker.produce(topic, [{"value": json.dumps(row), "partition": number % 2} for number, row in enumerate(AFTER)])
    with flow.start(tmp_path / "home", trigger="availableNow") as started:
        started.awaitTermination()
        rows = {row.user: (row.orders, row.spent) for row in started.view("spend").collect()}
    assert rows == {"ann": (2, 5.5), "bob": (2, 10.0), "cleo": (1, 0.5)}


def test_another_topic_is_not_gone_on_from(quick: SparkSession, kafka_broker: Kafka, tmp_path: Path) -> None:
    topic, checkpoint = kafka_broker.create(f"t{uuid4().hex[:8]}"), tmp_path / "checkpoint"
    for name, line in (("offsets", json.dumps({"other": {"0": 2}})), ("commits", "{}")):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text("\n".join(["v1", "{}", line]))
    flow = ns.Flow("till", quick)
    flow.view("all", flow.source("orders", ns.kafka(kafka_broker.servers, topic, schema="user string")))
    losses = planned(flow.program(), checkpoint).matched.losses
    assert any('does not read topic "other"' in loss for loss in losses)
