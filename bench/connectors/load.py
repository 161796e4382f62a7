"""Events for the engines: a topic that is full at once, or fills at a steady rate in a process of its own.

    python -m bench.connectors.load SERVERS TOPIC RATE SECONDS KEYS
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

PIECE = 10_000
PROCESSES = 2
PARTITIONS = 2


def producer(servers: str, linger: int) -> Any:
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": servers, "linger.ms": linger, "queue.buffering.max.messages": 500_000, "log_level": 0})


def fill(servers: str, topic: str, count: int, keys: int) -> None:
    """So many events, as fast as they can be written."""
    with ProcessPoolExecutor(PROCESSES) as pool:
        list(pool.map(_fill, *zip(*((servers, topic, count // PROCESSES, keys, seed) for seed in range(PROCESSES)), strict=True)))


def _fill(servers: str, topic: str, count: int, keys: int, seed: int) -> None:
    chance, client = random.Random(seed), producer(servers, 20)
    for done in range(0, count, PIECE):
        rows = [{"value": f"k{chance.randrange(keys)},{time.time():.6f}".encode()} for _ in range(min(PIECE, count - done))]
        while rows:
            client.produce_batch(topic, rows, partition=(done // PIECE) % PARTITIONS)
            rows = [row for row in rows if row.pop("_error", None) is not None]
            client.poll(0.05 if rows else 0)
    assert client.flush(60) == 0


def steady(servers: str, topic: str, rate: int, seconds: float, keys: int) -> None:
    """Each event bears the time at which it was handed to the client."""
    client, chance, begun, sent = producer(servers, 1), random.Random(5), time.time(), 0
    while (now := time.time()) - begun < seconds:
        while sent < int((now - begun) * rate):
            client.produce(topic, value=f"k{chance.randrange(keys)},{time.time():.6f}", partition=sent % PARTITIONS)
            sent += 1
        client.poll(0)
        time.sleep(0.001)
    client.flush(60)


def steadily(servers: str, topic: str, rate: int, seconds: float, keys: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.connectors.load", servers, topic, str(rate), str(seconds), str(keys)]
    return subprocess.Popen(command)


if __name__ == "__main__":
    servers, topic, rate, seconds, keys = sys.argv[1:]
    steady(servers, topic, int(rate), float(seconds), int(keys))
