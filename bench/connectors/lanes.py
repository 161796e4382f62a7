"""From topic to topic by each engine in turn, on one broker: how soon events come out, how soon after a kill, how fast a backlog goes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.connectors import load
from bench.connectors.engine import ENGINES, Spec
from bench.connectors.output import Output
from tests.servers.kafka import Kafka

READY_SECONDS = 300.0
SHARES = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Load:
    """Events a second over so many keys: first for some seconds that do not count."""

    rate: int
    keys: int
    warm: float
    seconds: float


@dataclass
class Lane:
    """An engine with topics and state of its own."""

    broker: Kafka
    spec: Spec
    started_at: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        self.started_at = time.time()
        with (Path(self.spec.folder) / "log").open("ab") as log:
            command = [sys.executable, "-m", "bench.connectors.engine", self.spec.text()]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline()) != b"ready\n":
            assert line, f"{self.spec.engine} did not start: {self.log()}"

    def log(self) -> str:
        return (Path(self.spec.folder) / "log").read_text()[-3000:]

    def check(self) -> None:
        assert self.process is not None and self.process.poll() is None, f"{self.spec.engine} has ended: {self.log()}"

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def lane(broker: Kafka, engine: str, jars: str, trigger: str = "") -> Iterator[Lane]:
    folder = tempfile.mkdtemp(prefix=f"bench-{engine}-")
    name = Path(folder).name
    source, target = broker.create(f"{name}-in", load.PARTITIONS), broker.create(f"{name}-out", 1)
    found = Lane(broker, Spec(engine, broker.servers, source, target, folder, jars, trigger))
    try:
        yield found
    finally:
        found.kill()
        broker.admin().delete_topics([source, target])
        shutil.rmtree(folder, ignore_errors=True)


def latency(broker: Kafka, engine: str, jars: str, given: Load, trigger: str = "") -> list[float]:
    """Delays of all events that count."""
    with lane(broker, engine, jars, trigger) as running, Output(broker.servers, running.spec.target) as out:
        running.start()
        seconds, begun = given.warm + given.seconds, time.time()
        load.steadily(broker.servers, running.spec.source, given.rate, seconds, given.keys).wait()
        out.wait_for(int(given.rate * seconds * 0.99), 60)
        running.check()
        return out.delays(begun + given.warm)


def resumed(broker: Kafka, engine: str, jars: str, rate: int, seconds: float, keys: int) -> tuple[float, float, int]:
    """Killed under load, and started at once: seconds until the first event from after the kill is out, until output is as soon as it was
    before (a second behind), and how many rows came out twice."""
    with lane(broker, engine, jars) as running, Output(broker.servers, running.spec.target) as out:
        running.start()
        feeding = load.steadily(broker.servers, running.spec.source, rate, seconds + READY_SECONDS, keys)
        try:
            out.wait_for(rate, READY_SECONDS)
            time.sleep(seconds)
            running.kill()
            killed = time.time()
            running.start()
            first, caught_up = _after(out, killed)
            return first - killed, caught_up - killed, out.repeated
        finally:
            feeding.kill()
            feeding.wait()


def _after(out: Output, killed: float) -> tuple[float, float]:
    end, place, first = time.time() + READY_SECONDS, len(out.seen), 0.0
    while time.time() < end:
        for at, newest in out.seen[place:]:
            place += 1
            first = first or (at if newest > killed else 0.0)
            if newest > killed and at - newest < 1.0:
                return first, at
        time.sleep(0.01)
    raise AssertionError(f"nothing within {READY_SECONDS:g} s of the kill")


def backlog(broker: Kafka, engine: str, jars: str, source: str, count: int) -> tuple[float, float, float]:
    """Events that were there before: seconds until all are out, from the start of the process and from the first output, and events a
    second between the first output and the last."""
    with lane(broker, engine, jars) as running:
        running.spec = Spec(engine, broker.servers, source, running.spec.target, running.spec.folder, jars)
        with Output(broker.servers, running.spec.target) as out:
            running.start()
            while not out.seen:
                running.check()
                time.sleep(0.01)
            time.sleep(0.3)
            first, done = time.time(), out.total
            last = out.wait_for(count, 1800)
            return last - running.started_at, last - first, (count - done) / max(last - first, 1e-3)


def in_turn(rounds: int, engines: Sequence[str] = ENGINES) -> Iterator[tuple[int, str]]:
    for number in range(rounds):
        for engine in engines:
            yield number, engine


def parts(delays: Sequence[float]) -> list[float]:
    """Milliseconds at each of `SHARES`."""
    return [1e3 * delays[min(len(delays) - 1, int(share * len(delays)))] for share in SHARES]
