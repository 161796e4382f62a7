"""How long until a flow goes on after its process was killed, on a warm session, with a small and with a large state; and Spark beside it.

A crash is a run that is dropped as it is: nothing drained, nothing closed in order. The next run on the same home is timed from `start` to
its first new epoch. Spark's query is stopped and started again from its checkpoint.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.durability.lanes import Lane
from bench.inputs import Input
from bench.queries import PLAIN


@dataclass(frozen=True)
class Recovery:
    """Seconds of an ordinary epoch, and from start to the first new epoch, each time it was tried."""

    engine: str
    keys: int
    epoch: float
    resumed: list[float]

    @property
    def seconds(self) -> float:
        return statistics.median(self.resumed)


def nosync_recovery(session: SparkSession, data: Input, keys: int, work: Path, filled: int, times: int) -> Recovery:
    """`filled` epochs bring the keys in; then, `times` over: two ordinary epochs, a crash, a start, one epoch."""
    lane = Lane("first", session, data, work)
    for _ in range(filled):
        lane.turn(1)
    ordinary, resumed = [], []
    for number in range(times):
        ordinary += [_epoch(lane), _epoch(lane)]
        _kill(lane)
        started = time.perf_counter()
        lane = Lane(f"again {number}", session, data, work)
        lane.stepping.step()
        resumed.append(time.perf_counter() - started)
    _kill(lane)
    return Recovery("nosync", keys, statistics.median(ordinary), resumed)


def _epoch(lane: Lane) -> float:
    started = time.perf_counter()
    lane.stepping.step()
    return time.perf_counter() - started


def _kill(lane: Lane) -> None:
    """Threads end where they are; nothing is brought to its place first."""
    lane.close()


def spark_recovery(session: SparkSession, data: Input, keys: int, work: Path, filled: int, times: int) -> Recovery:
    """The same with Structured Streaming: time from `start` to the end of the first batch."""
    ordinary, resumed = [], []
    _stream(session, data, work, filled)
    for _ in range(times):
        ordinary.append(_stream(session, data, work, 3)[1])
        resumed.append(_stream(session, data, work, 1)[0])
    return Recovery("spark-rocksdb", keys, statistics.median(ordinary), resumed)


def _stream(session: SparkSession, data: Input, work: Path, batches: int) -> tuple[float, float]:
    """Runs some batches and stops: seconds until the first was done, and of the last."""
    events = session.readStream.schema(data.schema).format(data.format).option("maxFilesPerTrigger", 1).load(data.folder)
    writer = PLAIN["plain"].ask(events).writeStream.format("noop").outputMode("update").option("checkpointLocation", str(work))
    started = time.perf_counter()
    query = writer.start()
    first = 0.0
    try:
        while True:
            done = [progress for progress in query.recentProgress if progress["numInputRows"]]
            if done and not first:
                first = time.perf_counter() - started
            if len(done) >= batches or not query.isActive:
                return first, float(done[-1]["durationMs"]["triggerExecution"]) / 1e3
            time.sleep(0.005)
    finally:
        query.stop()
