"""The fold operator as Spark tasks: for each key with new rows, one call of the user's function with its state and these rows.

Rows and states become Python values, and results Arrow columns, once for all keys of a shard. An error of the function, or of what it
returned, carries a note that names the fold, the view and the key.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.types import LongType, StructField, StructType, TimestampNTZType, TimestampType

from nosync.bridge.arrow import arrow_schema
from nosync.compile.rules.fold import Folding, FoldNode
from nosync.kernels.fold import States, Touched, previous_states, state_layer, touch
from nosync.kernels.timers import due, effective, timer_layer, with_due
from nosync.model.columns import COUNT, DIFF, HASH, ROW
from nosync.spark.schemas import change_schema
from nosync.spark.task import Batches, ShardTask, Work, column, emitted, unsigned
from nosync.state.merge import consolidate

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob

Key = tuple[Any, ...]


def step(job: "EpochJob", node: FoldNode) -> DataFrame:
    schema = change_schema(node.schema)
    shapes = node.keys, node.columns, node.state, arrow_schema(schema, node.name)
    record = None if node.record is None else job.work(node.record, "diffs")
    if record is not None and job.targets is not None:
        return job.context.session.range(0, job.context.shards, 1, job.context.shards).mapInArrow(RecordTask(record, shapes[-1]), schema)
    rows, timing = fold_input(job, node)
    task = FoldTask(job.work(node.trace, "upserts"), node.view, node.folding, *shapes, record, timing)
    return job.exchange(rows, node).mapInArrow(task, schema)


@dataclass(frozen=True)
class Timing:
    """Where timers are kept, and the watermarks of the epoch before and of this one."""

    work: Work
    since: int | None
    until: int | None


def fold_input(job: "EpochJob", node: FoldNode) -> tuple[DataFrame, Timing | None]:
    """What goes to the shards. Where there are timers, all shards are called."""
    if node.clock is None or node.timers is None:
        return job.rows(node.feed.piece), None
    calls = job.calls(node.fed)
    rows = job.rows(node.feed.piece).unionAll(calls) if job.piece_changes(node.feed.piece) else calls
    return rows, Timing(job.work(node.timers, "diffs"), job.moment.watermark_before(node.clock), job.moment.watermark(node.clock))


@dataclass(frozen=True)
class FoldTask(ShardTask):
    """`keys`, `columns` and `state` are Arrow's view of what the function sees, `output` of the change. `record`: where that is kept."""

    work: Work
    view: str
    folding: Folding
    keys: pa.Schema
    columns: pa.Schema
    state: pa.Schema
    output: pa.Schema
    record: Work | None = None
    timing: Timing | None = None

    def process(self, batch: pa.RecordBatch, started: float) -> Batches:
        shard = self.work.shard(batch)
        keys, rows = ([column(batch, field.name, field.type) for field in schema] for schema in (self.keys, self.columns))
        order_by = [rows[index] for index in self.folding.order_by]
        touched = touch(unsigned(batch, HASH), keys, rows, order_by, batch.column(DIFF).to_numpy(), self.folding.net)
        called = None if self.timing is None else due(self.timing.work.cover(shard), self.keys, self.timing.since, self.timing.until)
        on_time = np.zeros(len(touched.hashes), bool)
        if called is not None:
            touched, on_time = with_due(touched, called)
        before = previous_states(self.work.cover(shard), touched, [*self.state.types, *([pa.int64()] if called else [])])
        calls = Calls(self.folding, self.view, self.state, python_keys(touched.keys, self.folding.keys))
        calls.run(touched, before, rows, on_time)
        after = calls.states()
        if self.timing is not None and called is not None:
            after.values.append(effective(calls.timers(), self.timing.until))
            self.timing.work.hand_in(shard, len(called.hashes), timer_layer(self.keys, touched, called, on_time, before, after), started)
        self.work.hand_in(shard, batch.num_rows, state_layer(touched, before, after), started)
        hashes = np.repeat(touched.hashes, [len(part) for part in calls.returned]).view(np.int64)
        returned = calls.columns(calls.returned, self.folding.output, pa.schema(list(self.output)[:-2]))
        if self.record is not None:
            self.record.hand_in(shard, len(hashes), _recorded(self.output.names[:-2], returned, hashes), started)
        yield from emitted(self.output, [*returned, pa.array(hashes), pa.array(np.ones(len(hashes), np.int64))])


def _recorded(names: list[str], returned: list[pa.Array], hashes: np.ndarray) -> pa.RecordBatch:
    """What was returned, in the form of a diffs layer."""
    columns = {HASH: pa.array(hashes.view(np.uint64)), ROW: pa.array(np.zeros(len(hashes), np.uint64))}
    columns |= dict(zip(names, returned, strict=True))
    return consolidate(pa.RecordBatch.from_pydict(columns | {COUNT: pa.array(np.ones(len(hashes), np.int64))}))


@dataclass(frozen=True)
class RecordTask:
    """Emits again what was emitted in an epoch, from the record of it; for the shards whose numbers come in."""

    record: Work
    output: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for shard in (shard for batch in batches for shard in batch.column(0).to_pylist()):
            for block in (block for layer in self.record.cover(shard) for block in layer.verified()):
                columns = [block.column(name) for name in self.output.names[:-2]]
                yield from emitted(self.output, [*columns, block.column(HASH).view(pa.int64()), block.column(COUNT)])


class Calls:
    """The calls for some keys: their new states, the rows that they returned, and when they want to be called again."""

    def __init__(self, folding: Folding, view: str, kept: pa.Schema, keys: list[Key]) -> None:
        self.folding, self.view, self.kept, self.keys = folding, view, kept, keys
        self.after: list[Any] = []
        self.returned: list[list[Any]] = []
        self.times: list[Any] = []

    def run(self, touched: Touched, before: States, rows: list[pa.Array], on_time: np.ndarray) -> None:
        """A key whose time has come is called for that first, without rows."""
        where = pa.array(touched.order)
        seen = python_rows([row.take(where) for row in rows], self.folding.columns, touched.weights if self.folding.net else None)
        there = pa.array(np.flatnonzero(before.alive))
        states = iter(python_rows([values.take(there) for values in before.values[: len(self.kept)]], self.folding.state))
        facts = zip(self.keys, before.alive.tolist(), on_time.tolist(), touched.starts.tolist(), touched.ends.tolist(), strict=True)
        for key, alive, timed, start, end in facts:
            state, returned, at = next(states) if alive else None, list[Any](), None
            if timed:
                state, returned, at = self._call(key, state, [])
                state = None if state is None or start == end else self._again(key, state)
            if start < end:
                state, more, at = self._call(key, state, seen[start:end])
                returned = returned + more
            self.after.append(state)
            self.returned.append(returned)
            self.times.append(None if state is None else at)

    def _call(self, key: Key, state: Any, rows: list[Any]) -> tuple[Any, list[Any], Any]:
        try:
            result = self.folding.function(key, state, rows)
            if not isinstance(result, tuple) or len(result) != (3 if self.folding.timers else 2):
                when = ", and when to be called again" if self.folding.timers else ""
                raise TypeError(f"a fold returns its new state and a list of rows{when}, not {result!r}")
            return result[0], list(result[1] or ()), result[2] if self.folding.timers else None
        except Exception as error:
            error.add_note(self._note(key))
            raise

    def _again(self, key: Key, state: Any) -> Any:
        """A state that was just returned, as the next call sees it."""
        arrays = Calls(self.folding, self.view, self.kept, [key]).columns([[state]], self.folding.state, self.kept)
        return python_rows(arrays, self.folding.state)[0]

    def timers(self) -> pa.Array:
        """When to call again, by key, in microseconds."""
        schema = StructType([StructField("at", TimestampNTZType() if self.folding.naive else TimestampType())])
        kept = pa.schema([("at", pa.timestamp("us", None if self.folding.naive else "UTC"))])
        return self.columns([[(time,)] for time in self.times], schema, kept)[0].cast(pa.int64())

    def _note(self, key: Key) -> str:
        return f'in fold "{self.folding.name}" of view "{self.view}", for key {key!r}'

    def states(self) -> States:
        """The new states, by key."""
        alive = np.array([state is not None for state in self.after], bool)
        arrays = self.columns([[state] if state is not None else [] for state in self.after], self.folding.state, self.kept)
        positions = pa.array(np.cumsum(alive) - 1, mask=~alive)
        return States(alive, [array.take(positions) for array in arrays])

    def columns(self, parts: list[list[Any]], schema: StructType, kept: pa.Schema) -> list[pa.Array]:
        """What was returned for the keys, as columns. Where something does not fit, its key is named."""
        try:
            return arrow_columns([row for part in parts for row in part], schema, kept)
        except Exception:
            for key, part in zip(self.keys, parts, strict=True):
                try:
                    arrow_columns(part, schema, kept)
                except Exception as error:
                    words = str(error).strip().splitlines()[0]
                    wrong = TypeError(f"what the fold returned does not fit {schema.simpleString()}: {words}")
                    wrong.add_note(self._note(key))
                    raise wrong from None
            raise


def python_rows(arrays: list[pa.Array], schema: StructType, weights: np.ndarray | None = None) -> list[Any]:
    """Columns as Rows, as PySpark's `collect` gives them; with weights, with their `_diff` last."""
    if weights is not None:
        schema, arrays = StructType([*schema.fields, StructField(DIFF, LongType())]), [*arrays, pa.array(weights)]
    with uncollected():
        return list(ArrowTableToRowsConversion.convert(pa.table(arrays, names=schema.names), schema))


def python_keys(arrays: list[pa.Array], schema: StructType) -> list[Key]:
    """Columns as tuples."""
    with uncollected():
        return list(ArrowTableToRowsConversion.convert(pa.table(arrays, names=schema.names), schema, return_as_tuples=True))


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection: many new values that stay would be looked through again and again, for half of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def arrow_columns(rows: list[Any], schema: StructType, kept: pa.Schema) -> list[pa.Array]:
    """Tuples, dicts or Rows as columns, as PySpark's `createDataFrame` takes them."""
    if not rows:
        return [pa.nulls(0, field.type) for field in kept]
    nullable = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    with uncollected():
        table = LocalDataToArrowConversion.convert(rows, nullable, False).combine_chunks()
    found = [chunked.chunk(0) if chunked.num_chunks else pa.nulls(0, chunked.type) for chunked in table.columns]
    return [array if array.type == field.type else array.cast(field.type) for array, field in zip(found, kept, strict=True)]


def fold_at_once(folding: Folding, rows: list[pa.Array], key: Key) -> pa.Table:
    """All rows of a key in one call, from no state: what a fold answers outside of a flow."""
    nothing = np.zeros(len(rows[0]), np.uint64)
    touched = touch(nothing, [], rows, [rows[index] for index in folding.order_by], np.ones(len(nothing), np.int64), folding.net)
    seen = python_rows([row.take(pa.array(touched.order)) for row in rows], folding.columns, touched.weights if folding.net else None)
    returned = folding.function(key, None, seen)[1]
    schema = pa.schema([(field.name, field.type) for field in LocalDataToArrowConversion.convert([None], folding.output, False).schema])
    return pa.table(arrow_columns(list(returned or ()), folding.output, schema), schema=schema)
