"""Everything at once: a broker, a database, the shop, customers who buy and move; and kills, with a comparison at the end.

    python -m examples.shop_live [--kills 3] [--seed 7]

In front of you the flow's process is killed with `kill -9`, then the broker, then the database, while orders go on. In the end the table
and the compacted topic are compared with what SQL says of all orders, and the alerts are replayed: each must follow from the one before.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.servers.kafka import Kafka, kafka
from tests.servers.postgres import Postgres, postgres

CUSTOMERS = 50
TRUTH = """select c.id, c.name, sum(o.price)::numeric(19,2), count(*) from customers c join bought o on o.customer = c.id
    group by c.id, c.name order by c.id"""
SETTLED_SECONDS = 300.0
VICTIMS = ("the flow", "the broker", "the database")


@dataclass
class Market:
    """People who buy and change their names, until they are asked to stop."""

    broker: Kafka
    database: Postgres
    chance: random.Random
    done: threading.Event = field(default_factory=threading.Event)
    orders: int = 0
    producer: Any = None

    def open(self) -> None:
        self.database.query("create table customers (id int primary key, name text)")
        self.database.query("create table bought (id bigint primary key, customer int, price numeric(9,2))")
        self.database.query(f"insert into customers select i, 'customer ' || i from generate_series(1, {CUSTOMERS}) i")
        self.broker.create("orders", 3)
        self.broker.create("alerts", 1)
        self.broker.create("spend", 1, cleanup_policy="compact")

    def trade(self) -> None:
        """Each round is a transaction of the broker, and of the database, which is where the truth is; both are tried until they stand."""
        while not self.done.is_set():
            rows = [
                (self.orders + number, self.chance.randint(1, CUSTOMERS + 5), Decimal(self.chance.randint(1, 9999)) / 100)
                for number in range(self.chance.randint(1, 40))
            ]
            self.orders += len(rows)
            values = ", ".join(f"({id}, {customer}, {price})" for id, customer, price in rows)
            self._insist(lambda values=values: self.database.query(f"insert into bought values {values} on conflict do nothing"))
            keys = [{"id": id, "customer": customer, "price": str(price)} for id, customer, price in rows]
            messages = [{"key": str(row["customer"]), "value": json.dumps(row)} for row in keys]
            self._send(messages)
            if self.chance.random() < 0.5:
                id = self.chance.randint(1, CUSTOMERS + 5)
                name = f"name {self.orders}"
                upsert = f"insert into customers values ({id}, '{name}') on conflict (id) do update set name = '{name}'"
                self._insist(lambda upsert=upsert: self.database.query(upsert))
            self.done.wait(0.1)

    def _send(self, messages: list[dict[str, str]]) -> None:
        """Idempotent producers do not repeat what they have sent: while the broker is away they wait."""
        from confluent_kafka import Producer

        if self.producer is None:
            self.producer = Producer({"bootstrap.servers": self.broker.servers, "enable.idempotence": True, "log_level": 0})
        for message in messages:
            self.producer.produce("orders", **message)
        while self.producer.flush(1.0):
            pass

    def _insist(self, work: Callable[[], object]) -> None:
        while True:
            try:
                work()
                return
            except Exception:
                time.sleep(0.1)


@dataclass
class Shop:
    """The flow's process, which is killed and started again."""

    environment: dict[str, str]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with self.log.open("ab") as lines:
            program = [sys.executable, str(Path(__file__).parent / "shop.py")]
            self.process = subprocess.Popen(program, env=self.environment, stdout=lines, stderr=lines)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def check(self) -> None:
        assert self.process is not None and self.process.poll() is None, f"the shop has ended: {self.log.read_text()[-3000:]}"


def replayed(broker: Kafka) -> dict[int, tuple[str, Decimal]]:
    """What the alerts come to; each message must follow from those before it."""
    found: dict[int, object] = {}
    for message in broker.consume("alerts"):
        change, key = json.loads(message.value()), json.loads(message.key())
        assert found.get(key) == change["before"], f"{change} does not follow {found.get(key)}"
        found[key] = change["after"]
    rows = [row for row in found.values() if isinstance(row, dict)]
    return {row["customer"]: (row["name"], Decimal(row["spent"])) for row in rows}


def kept(broker: Kafka) -> dict[int, tuple[str, Decimal, int]]:
    """What a compacted topic comes to; no message may say again what the one before it said."""
    found: dict[int, object] = {}
    for message in broker.consume("spend"):
        key, row = int(message.key()), None if message.value() is None else json.loads(message.value())
        assert found.get(key) != row, f"{row} came twice"
        found[key] = row
    rows = [row for row in found.values() if isinstance(row, dict)]
    return {row["customer"]: (row["name"], Decimal(row["spent"]), row["orders"]) for row in rows}


def settled(shop: Shop, broker: Kafka, database: Postgres) -> bool:
    shop.check()
    truth = database.query(TRUTH)
    if database.query("select customer, name, spent, orders from spend order by 1") != truth:
        return False
    alerts = {id: (name, spent) for id, name, spent, _ in truth if spent > 2000}
    return replayed(broker) == alerts and kept(broker) == {id: tuple(row) for id, *row in truth}


def play(kills: int, seed: int, folder: Path, seconds: float = 6.0) -> int:
    """Gives the number of orders, once everything agrees."""
    chance = random.Random(seed)
    with postgres() as database, kafka(folder / "broker") as broker:
        market = Market(broker, database, chance)
        market.open()
        home = {"SHOP_BROKER": broker.servers, "SHOP_DATABASE": database.url(), "SHOP_HOME": str(folder / "home")}
        shop = Shop(os.environ | home, folder / "shop.log")
        trader = threading.Thread(target=market.trade, daemon=True)
        trader.start()
        try:
            shop.start()
            wait_for(lambda: bool(database.query("select 1 from pg_tables where tablename = 'spend'")), shop)
            for number in range(kills):
                time.sleep(chance.uniform(0.5, seconds))
                victim = VICTIMS[number % len(VICTIMS)]
                print(f"kill -9 of {victim}, after {market.orders:,} orders", flush=True)
                server = {"the flow": shop, "the broker": broker, "the database": database}[victim]
                server.kill()
                time.sleep(chance.uniform(0.0, 2.0))
                server.start()
            time.sleep(seconds)
            market.done.set()
            trader.join()
            wait_for(lambda: settled(shop, broker, database), shop)
            print(f"{market.orders:,} orders: table, topic and alerts are what SQL says of them; nothing lost, nothing doubled", flush=True)
        finally:
            market.done.set()
            shop.kill()
        return market.orders


def wait_for(condition: Callable[[], bool], shop: Shop) -> None:
    end = time.monotonic() + SETTLED_SECONDS
    while not condition():
        shop.check()
        assert time.monotonic() < end, f"not within {SETTLED_SECONDS:g} s: {shop.log.read_text()[-2000:]}"
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        play(given.kills, given.seed, Path(folder))


if __name__ == "__main__":
    main()
