"""What a sink gets of an epoch, or of some at once: the rows that they add and remove, read from the layers that they left."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.journal.journal import Journal
from nosync.model.columns import COUNT, DIFF, EPOCH
from nosync.model.errors import HANDLED, Fenced, NosyncError, user_code
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.places import Sharing
from nosync.model.sink import Identity, Sink
from nosync.runtime.program import Program
from nosync.spark.read import changes_frame
from nosync.state.layer import open_layer, verify
from nosync.state.merge import summed

AGAIN = "Correct the cause and start the flow on the same home."
CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class LayerChanges:
    """`Changes` in the layers of some epochs, the last of which gives the number. What they add and take back again is not among them.
    `pieces` have no rows in common, each of one or more layers.
    """

    spark: SparkSession
    home: str
    epoch: Epoch
    columns: StructType
    pieces: tuple[tuple[LayerInfo, ...], ...]
    sharing: Sharing | None = None

    @property
    def empty(self) -> bool:
        return not self.pieces

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(StructType(list(self.columns.fields)).add(EPOCH, LongType()).add(DIFF, LongType()), "the sink")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Block by block, in an order that is always the same."""
        for piece in self.pieces:
            for block in summed([verify(open_layer(self.home, layer)) for layer in piece]):
                columns = [block.column(f"c{i}").cast(field.type) for i, field in enumerate(self.schema) if i < len(self.columns)]
                epochs = pa.array([self.epoch] * block.num_rows, pa.int64())
                yield pa.RecordBatch.from_arrays([*columns, epochs, block.column(COUNT)], schema=self.schema)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches(), self.schema)

    def frame(self) -> DataFrame:
        """An ordinary DataFrame that reads the layers when it is used."""
        return changes_frame(self.spark, self.home, self.epoch, self.columns, self.pieces, self.sharing)


class LayerOutlet:
    """Hands epochs to the sinks of a program. Making one opens them all, or none. Each sink is called by one thread at a time. `sharing`:
    executors do not see the home.
    """

    sharing: Sharing | None = None

    def __init__(self, program: Program, journal: Journal, home: str) -> None:
        self.program, self.journal, self.home = program, journal, home
        self._open: dict[str, Sink] = {}
        self._called = {name: threading.Lock() for name in program.sinks}
        declared = journal.image.declared
        known_as = (declared.first_name or declared.flow) if declared else program.name
        try:
            for name, found in program.sinks.items():
                with user_code(f'sink "{name}" cannot be opened', hint=AGAIN):
                    found.sink.open(journal.run, Identity(known_as, name, journal.image.history))
                self._open[name] = found.sink
        except BaseException:
            with suppress(NosyncError):  # what went wrong first is what matters
                self.close()
            raise

    def close(self, seconds: float = CLOSE_SECONDS) -> tuple[str, ...]:
        """Closes what is open, however the run ended, and nothing is delivered from then on; says afterwards what could not be closed. A
        sink that has not come back from `deliver` after so long is not closed, since nobody else may call it meanwhile: gives the names.
        """
        until, busy = time.monotonic() + seconds, list[str]()
        with ExitStack() as closing:
            while self._open:
                name, sink = self._open.popitem()
                if not self._called[name].acquire(timeout=max(0.0, until - time.monotonic())):
                    busy.append(name)
                    continue
                closing.callback(self._called[name].release)
                closing.enter_context(user_code(f'sink "{name}" cannot be closed', hint="It has all epochs that it took."))
                closing.callback(_close, sink)
        return tuple(busy)

    def precise(self, sink: str) -> bool:
        return self.program.sinks[sink].sink.promise.guarantee == "precise"

    def deliver(self, sink: str, first: Epoch, last: Epoch) -> None:
        node = self.program.graph.sinks[sink]
        with self.journal.lock:
            shards = self.journal.image.traces.get(node.trace, {})
            layers = {shard: _newest(shards[shard], first, last) for shard in sorted(shards)}
        changes = LayerChanges(self.program.spark, self.home, last, node.schema, tuple(_apart(layers)), self.sharing)
        hint = f"The epoch will be delivered again. {AGAIN}"
        with self._called[sink]:
            if (target := self._open.get(sink)) is None:
                raise Fenced(f'sink "{sink}" is closed: this run has ended', hint="Start the flow again.")
            with user_code(f'sink "{sink}" did not take epoch {last}', hint=hint, passed=HANDLED):
                target.deliver(last, changes)


def _close(sink: Sink) -> None:
    sink.close()


def _apart(layers: Mapping[HashRange, Sequence[LayerInfo]]) -> Iterator[tuple[LayerInfo, ...]]:
    """Layers by pieces that have no hashes in common: a shard each, or several where the flow was rescaled meanwhile. `layers` are by
    ranges in ascending order.
    """
    piece, end = list[LayerInfo](), 0
    for held, found in layers.items():
        if not found:
            continue
        if piece and held.lower >= end:
            yield tuple(piece)
            piece = []
        piece, end = [*piece, *found], max(end, held.upper)
    if piece:
        yield tuple(piece)


def _newest(layers: Sequence[LayerInfo], first: Epoch, last: Epoch) -> list[LayerInfo]:
    """The layers that end with these epochs, of each the last recorded if there are several. They begin there too, but for the first of a
    sink that came with a changed program.
    """
    found = {layer.upper: layer for layer in layers if first < layer.upper <= last + 1}
    return [found[upper] for upper in sorted(found)]
