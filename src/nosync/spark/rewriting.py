"""The rows of an earlier view, epoch by epoch, as those of another that is computed from them row by row: one job for all epochs."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Java
from nosync.bridge.frames import analyzed, run
from nosync.graph.nodes import Derived, ViewNode
from nosync.history.changes import ChangeStep
from nosync.history.record import ViewRecord
from nosync.model.columns import DIFF, EPOCH, HASH, ROW
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.layers import LayerInfo
from nosync.spark.job_context import JobContext
from nosync.spark.read import steps_frame
from nosync.spark.receipts import Receipt, agreed
from nosync.spark.retain import RetainTask
from nosync.spark.schemas import NOTHING
from nosync.spark.task import Batches, Work, stacked


@dataclass(frozen=True)
class Rewriting:
    """What `view` keeps, of the rows that `before` has had. `steps` are the changes of these; what changed in one belongs to a layer from
    the epoch that `first` says on.
    """

    view: ViewNode
    before: ViewRecord
    derived: Derived
    steps: Sequence[ChangeStep]
    first: Mapping[Epoch, Epoch]


def fits(before: ViewRecord, derived: Derived) -> bool:
    """Whether what is kept of the earlier view comes back in the types that it had."""
    types = types_of(before)
    return all(str(column.dataType().catalogString()) == types[place].dataType.simpleString() for place, column in derived.inputs.items())


def types_of(before: ViewRecord) -> StructType:
    """Its columns under numbers, as Spark has them."""
    numbered = pa.schema([field.with_name(f"c{place}") for place, field in enumerate(before.schema)])
    return from_arrow_schema(numbered)


def rewritten(context: JobContext, asked: Rewriting) -> list[LayerInfo]:
    """The layers, in the shards of now."""
    view, trace = asked.view, asked.view.trace
    assert view.payload is not None
    first = min(asked.first.values())
    work = Work(
        context.home, context.flow, context.run, trace, first, Epoch(first + 1), context.shards, "diffs", {}, context.receipts,
        sharing=context.sharing,
    )  # fmt: skip
    context.receipts.value = []
    rows = context.catalyst.frame(_kept(context, asked)).repartitionById(context.shards, context.shard).sortWithinPartitions(EPOCH)
    run(rows.mapInArrow(RewriteTask(RetainTask(work, view.payload), dict(asked.first)), NOTHING))
    found: dict[Epoch, list[Receipt]] = {}
    for receipt in context.receipts.value:
        if receipt.trace == trace:
            found.setdefault(receipt.epoch, []).append(receipt)
    return [receipt.layer for epoch in sorted(found) for receipt in agreed(found[epoch]) if receipt.layer]


def _kept(context: JobContext, asked: Rewriting) -> Java:
    """As `compile` says what a view keeps: columns in their order, where they lie, the hash of the row, the diff; and the epoch. What an
    operator has sharded lies where it lay before: the same one gives these rows.
    """
    catalyst, view, inputs = context.catalyst, asked.view, asked.derived.inputs
    before = asked.before.with_places()
    frame = steps_frame(context.session, context.home, before, asked.steps, types_of(before), context.sharing)
    plan = analyzed(frame.select(*(f"c{place}" for place in (*inputs, len(asked.before.schema))), EPOCH, DIFF))
    place, epoch, diff = (catalyst.attribute(name, catalyst.types.LongType, nullable=False) for name in (HASH, EPOCH, DIFF))
    below = catalyst.in_place(plan, [*inputs.values(), place, epoch, diff])
    columns = [asked.derived.columns[column] for column in view.stored]
    row = catalyst.hash(columns)
    named = [*((column, f"c{number}") for number, column in enumerate(columns)), (place if view.sharded else row, HASH), (row, ROW)]
    return catalyst.project([*catalyst.aliases(named), epoch, diff], below)


@dataclass(frozen=True)
class RewriteTask:
    """Keeps the rows of one shard, which come in the order of their epochs: a layer for each."""

    retain: RetainTask
    first: Mapping[Epoch, Epoch]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for epoch, rows in _by_epoch(batches):
            work = replace(self.retain.work, lower=self.first[epoch], upper=Epoch(epoch + 1))
            yield from replace(self.retain, work=work).process(rows, time.perf_counter())


def _by_epoch(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Epoch, pa.RecordBatch]]:
    """All rows of an epoch together."""
    held: list[pa.RecordBatch] = []
    now = NO_EPOCH
    for batch in batches:
        epochs = batch.column(EPOCH).to_numpy()
        ends = [*(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(epochs)]
        for start, end in pairwise([0, *ends]):
            if start < end and epochs[start] != now and held:
                yield now, stacked(held)
                held = []
            if start < end:
                now = Epoch(epochs[start])
                held.append(batch.slice(start, end - start))
    if held:
        yield now, stacked(held)
