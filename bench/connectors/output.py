"""What has come out of an engine, as a reader of what is committed sees it, and when."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Output:
    """`seen` has, for each row, when it was seen, and the newest time of an event in it. `counts` by key."""

    servers: str
    topic: str
    seen: list[tuple[float, float]] = field(default_factory=list)
    counts: dict[bytes, int] = field(default_factory=dict)
    total: int = 0
    repeated: int = 0
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Output:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._thread.join(30)

    def _read(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({
            "bootstrap.servers": self.servers, "group.id": "output", "enable.auto.commit": False, "isolation.level": "read_committed",
            "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10, "log_level": 0,
        })  # fmt: skip
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        while not self._done.is_set():
            first = consumer.poll(0.1)
            now = time.time()
            for message in [] if first is None else [first, *consumer.consume(20_000, 0)]:
                if message.error() is None:
                    self._take(message, now)
        consumer.close()

    def _take(self, message: Any, now: float) -> None:
        """A count that does not rise was said before."""
        count, newest = message.value().split(b",")
        before = self.counts.get(message.key(), 0)
        self.repeated += int(count) <= before
        self.counts[message.key()] = int(count)
        self.total += int(count) - before
        self.seen.append((now, float(newest)))

    def wait_for(self, count: int, seconds: float) -> float:
        """When so many events were counted."""
        end = time.time() + seconds
        while self.total < count:
            assert time.time() < end, f"{self.total:,} of {count:,} events came out within {seconds:g} s"
            time.sleep(0.01)
        return self.seen[-1][0]

    def delays(self, since: float) -> list[float]:
        """From the making of an event to its output, of events since then; sorted."""
        return sorted(at - newest for at, newest in list(self.seen) if newest >= since)
