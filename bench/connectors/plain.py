"""Kafka: a topic read into Arrow by a task, beside a plain consumer in one process. PostgreSQL: epochs into a table, beside COPY."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import nosync as ns
from nosync.clients.kafka import settings
from nosync.sources.kafka_records import TASKS
from nosync.sources.kafka_task import KafkaTask
from tests.connectors.rows import IDENTITY, Rows
from tests.servers.kafka import Kafka
from tests.servers.postgres import Postgres

RECORDS, ROWS, ROUNDS = 500_000, 200_000, 5
HEAD = f"{'':<32}{'nosync':>14}{'plain':>14}{'ratio':>8}"


@dataclass(frozen=True)
class Given(Rows):
    """Changes whose table is made before the clock starts."""

    given: pa.Table

    def table(self) -> pa.Table:
        return self.given


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def compared(what: str, count: int, ours: Callable[[], Any], plain: Callable[[], Any]) -> str:
    """Medians of interleaved rounds, and how many times faster ours is."""
    pairs = [(seconds(ours), seconds(plain)) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    return f"{what:<32}{count / mine:>12,.0f}/s{count / theirs:>12,.0f}/s{theirs / mine:>8.2f}"


def read_topic(broker: Kafka) -> str:
    topic = broker.create("read", 1)
    for _ in range(10):
        broker.produce(topic, [{"value": b'{"id": 1, "price": 2.5}'}] * (RECORDS // 10))
    one = pa.record_batch({"id": [0]})

    def ours() -> None:
        task = KafkaTask({**TASKS, **settings(broker.servers, {})}, (((topic, 0, 0, RECORDS),),), ("value",))
        assert sum(batch.num_rows for batch in task([one])) == RECORDS

    def plain() -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({**settings(broker.servers, {}), "group.id": "plain", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        while len(values) < RECORDS:
            values += [message.value() for message in consumer.consume(20_000, 0.5)]
        pa.array(values, pa.binary())
        consumer.close()

    return compared("Kafka, records read", RECORDS, ours, plain)


def write_table(server: Postgres) -> str:
    rows = tuple((number, f"name {number}", number / 7, 1) for number in range(ROWS))
    columns = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
    table = Rows(1, columns, rows).table()

    sink = ns.to_postgres(server.url(), "ours", key="id")
    sink.open("1.a", IDENTITY)
    numbers = iter(range(1, 1000))
    removed = table.set_column(4, "_diff", pa.array([-1] * ROWS, pa.int64()))
    changed = table.set_column(2, "price", pa.array([number / 3 for number in range(ROWS)]))
    update = pa.concat_tables([removed, changed])
    server.query("create table plain (id bigint primary key, name text, price float8)")

    def plain() -> None:
        import psycopg

        with psycopg.connect(server.url()) as connection, connection.cursor() as cursor:
            cursor.execute("truncate plain")
            with cursor.copy("copy plain from stdin") as copy:
                for row in rows:
                    copy.write_row(row[:3])

    def new() -> None:
        server.query("truncate ours")
        deliver(table)

    def deliver(given: pa.Table) -> None:
        sink.deliver(number := next(numbers), Given(number, columns, rows, given))

    deliver(table)
    found = [compared("PostgreSQL, rows added by key", ROWS, new, plain)]
    found.append(compared("PostgreSQL, rows replaced", ROWS, lambda: deliver(update), plain))
    sink.close()
    return "\n".join(found)
