"""The engines: each runs one query over all files of an input, one file an epoch, and reports how long each epoch took.

Every engine is called as `engine(session, task)` and returns an `Outcome`; the answer is compared with the truth after the clock
has stopped. Epoch times are the engines' own (`durationMs.triggerExecution`); the wall clock stands beside them, so that work
hidden between epochs would show.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.inputs import Input
from bench.operators import OPERATORS
from bench.queries import PLAIN, Query, disagreements

QUERIES = PLAIN | OPERATORS


@dataclass(frozen=True)
class Task:
    """What to run: a query over an input, with `levels` stateful steps (only nosync can chain them), state kept under `state`."""

    input: Input
    query: str
    state: str
    levels: int = 1


@dataclass(frozen=True)
class Outcome:
    """Rows and milliseconds of every epoch, the wall clock, and what was wrong with the answer (None: not asked)."""

    epochs: list[tuple[int, float]]
    wall_seconds: float
    ended_at: float
    wrong: list[str] | None


def run_spark(session: SparkSession, task: Task) -> Outcome:
    """Structured Streaming with the state store of the session, in update mode."""
    query = QUERIES[task.query]
    events = _stream(session, task.input)
    writer = query.ask(events.withWatermark(*query.watermark) if query.watermark else events).writeStream
    clocked = _run_stream(writer.format("noop").outputMode(query.mode), task)
    if query.from_state is None:
        return Outcome(*clocked, None)
    answer = query.from_state(session.read.format("statestore").load(task.state))
    return Outcome(*clocked, _wrong(query, answer, task))


def run_stateless(session: SparkSession, task: Task) -> Outcome:
    """The same micro-batches grouped each for itself: what reading and shuffling cost in Spark without any state."""
    query = QUERIES[task.query]

    def group(batch: DataFrame, _: int) -> None:
        query.ask(batch).write.format("noop").mode("overwrite").save()

    return Outcome(*_run_stream(_stream(session, task.input).writeStream.foreachBatch(group), task), None)


def run_nosync(session: SparkSession, task: Task) -> Outcome:
    """A flow with one view, or a chain of views each grouping the one before."""
    import nosync as ns

    query = QUERIES[task.query]
    flow = ns.Flow("bench", spark=session)
    source = ns.files(task.input.folder, format=task.input.format, schema=task.input.schema, maxFilesPerTrigger=1)
    timing = {"watermark": query.watermark} if query.watermark else {}
    emission = {"emit": "final"} if query.watermark and query.mode == "append" else {}
    answer = flow.view("level1", query.ask(flow.source("events", source, **timing)), **emission)
    for level in range(2, task.levels + 1):
        answer = flow.view(f"level{level}", _coarser(answer))
    started = time.perf_counter()
    run = flow.start(home=task.state, shards=2, trigger={"availableNow": True})
    run.awaitTermination()
    seconds, ended_at = time.perf_counter() - started, time.time()
    epochs = _epochs(run.recentProgress)
    wrong = _wrong(query, run.view("level1"), task)
    if task.levels > 1:
        wrong += _wrong_counts(run.view(f"level{task.levels}"), task)
    run.stop()
    return Outcome(epochs, seconds, ended_at, wrong)


def _coarser(view: DataFrame) -> DataFrame:
    """The next level: a tenth of the groups, count and sum carried on."""
    return view.groupBy(F.expr("key div 10").alias("key")).agg(F.sum("n").alias("n"), F.sum("total").alias("total"))


def _stream(session: SparkSession, data: Input) -> DataFrame:
    return session.readStream.schema(data.schema).format(data.format).option("maxFilesPerTrigger", 1).load(data.folder)


def _run_stream(writer: Any, task: Task) -> tuple[list[tuple[int, float]], float, float]:
    started = time.perf_counter()
    running = writer.option("checkpointLocation", task.state).trigger(availableNow=True).start()
    running.awaitTermination()
    seconds, ended_at = time.perf_counter() - started, time.time()
    return _epochs(running.recentProgress), seconds, ended_at


def _epochs(progress: Iterable[Any]) -> list[tuple[int, float]]:
    return [(p["numInputRows"], float(p["durationMs"]["triggerExecution"])) for p in progress if p["numInputRows"]]


def _wrong(query: Query, answer: DataFrame, task: Task) -> list[str]:
    return disagreements(query.totals(answer).collect()[0].asDict(), task.input.truth)


def _wrong_counts(answer: DataFrame, task: Task) -> list[str]:
    totals = answer.agg(F.sum("n").alias("count"), F.sum("total").alias("total")).collect()[0].asDict()
    return disagreements(totals, {name: task.input.truth[name] for name in ("count", "total")})


ENGINES: dict[str, Callable[[SparkSession, Task], Outcome]] = {
    "spark-memory": run_spark,
    "spark-rocksdb": run_spark,
    "spark-stateless": run_stateless,
    "nosync": run_nosync,
}
