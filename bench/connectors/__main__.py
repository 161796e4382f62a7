"""`python -m bench.connectors`: Kafka to Kafka beside Structured Streaming's micro-batches and Real-time Mode, then each connector beside a
plain client. The servers are those of the tests; everything is on loopback. Engines take turns; figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.connectors import lanes, load, plain
from bench.connectors.engine import ENGINES, MICRO, NOSYNC
from tests.servers.installing import spark_kafka
from tests.servers.kafka import Kafka, kafka
from tests.servers.postgres import postgres

KEYS = 10  # for each event of a second: few come twice in an epoch


class Report:
    """One part after the other, as it is done."""

    def __init__(self, given: argparse.Namespace, broker: Kafka) -> None:
        self.given, self.broker = given, broker
        self.console = Console(width=140)
        self.jars = ",".join(map(str, sorted(spark_kafka().glob("*.jar")))) if set(given.engine) != {NOSYNC} else ""

    def _rounds(self, measure: Callable[[str], Sequence[float]]) -> dict[str, list[float]]:
        """Medians by engine."""
        found: dict[str, list[Sequence[float]]] = {engine: [] for engine in self.given.engine}
        for number, engine in lanes.in_turn(self.given.rounds, self.given.engine):
            found[engine].append(one := measure(engine))
            self.console.print(f"round {number + 1}, {engine}: {', '.join(f'{value:,.3g}' for value in one)}")
        return {engine: [statistics.median(values) for values in zip(*rounds, strict=True)] for engine, rounds in found.items()}

    def _table(self, title: str, columns: Sequence[str], rows: dict[str, list[float]], form: str) -> None:
        table = Table("", *columns, title=title)
        for engine, values in rows.items():
            table.add_row(engine, *(format(value, form) for value in values))
        self.console.print(table)

    def latency(self) -> None:
        for rate in self.given.rate:
            keys = KEYS * rate
            title = f"from production to committed output, {rate:,} events/s over {keys:,} keys, ms"
            self._table(title, ["p50", "p95", "p99", "worst"], self._rounds(partial(self._delays, rate, keys)), ",.0f")

    def _delays(self, rate: int, keys: int, engine: str) -> list[float]:
        load = lanes.Load(rate, keys, self.given.warm, self.given.seconds)
        return lanes.parts(lanes.latency(self.broker, engine, self.jars, load, self.given.trigger if engine == NOSYNC else ""))

    def resume(self) -> None:
        rows = self._rounds(lambda engine: lanes.resumed(self.broker, engine, self.jars, 1_000, self.given.seconds / 2, 10_000))
        self._table("after kill -9 at 1,000 events/s", ["s to the first new output", "s until caught up", "rows repeated"], rows, ",.1f")

    def backlog(self) -> None:
        count, source = self.given.backlog, self.broker.create("backlog", load.PARTITIONS)
        load.fill(self.broker.servers, source, count, 100_000)
        rows = self._rounds(lambda engine: lanes.backlog(self.broker, engine, self.jars, source, count))
        self._table(f"a backlog of {count:,} events", ["s from the start", "s from the first output", "events/s"], rows, ",.1f")
        if {NOSYNC, MICRO} <= {*rows}:
            self.console.print(f"events/s, nosync to micro-batches: {rows[NOSYNC][2] / rows[MICRO][2]:.2f}")

    def read(self) -> None:
        self.console.print(plain.HEAD)
        self.console.print(plain.read_topic(self.broker))


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.connectors", description=(__doc__ or "").strip())
    parts = ("latency", "resume", "backlog", "read", "postgres")
    parser.add_argument("--only", action="append", choices=parts, help="may be repeated")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be repeated")
    parser.add_argument("--rate", action="append", type=int, help="events a second of the latency's load; may be repeated (1000, 10000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=45.0, help="of load that counts")
    parser.add_argument("--warm", type=float, default=20.0, help="seconds of load before it")
    parser.add_argument("--backlog", type=int, default=10_000_000, help="events")
    parser.add_argument("--trigger", default="", help='an aim for nosync\'s epochs, such as "50 ms"; empty: as fast as they go')
    found = parser.parse_args(given)
    found.rate = found.rate or [1_000, 10_000]
    found.only, found.engine = found.only or list(parts), tuple(found.engine or ENGINES)
    return found


def main(given: Sequence[str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers and engines end with it
    asked = arguments(given)
    if {*asked.only} - {"postgres"}:
        with tempfile.TemporaryDirectory() as folder, kafka(Path(folder) / "broker") as broker:
            report = Report(asked, broker)
            for part in asked.only:
                if part != "postgres":
                    getattr(report, part)()
    if "postgres" in asked.only:
        with postgres() as server:
            print(plain.HEAD)
            print(plain.write_table(server), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
