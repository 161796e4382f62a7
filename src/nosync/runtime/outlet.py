"""What a sink gets of an epoch: the rows that it adds and removes, read from the layers that the epoch left."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.journal.journal import Journal
from nosync.model.columns import COUNT, DIFF, EPOCH
from nosync.model.errors import HANDLED, Fenced, NosyncError, user_code
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.sink import Identity, Sink
from nosync.runtime.program import Program
from nosync.spark.read import changes_frame
from nosync.state.layer import open_layer, verify

AGAIN = "Correct the cause and start the flow on the same home."
CLOSE_SECONDS = 10.0


@dataclass(frozen=True)
class LayerChanges:
    """`Changes` in the layers of an epoch."""

    spark: SparkSession
    home: str
    flow: str
    epoch: Epoch
    columns: StructType
    layers: tuple[LayerInfo, ...]

    @property
    def empty(self) -> bool:
        return not self.layers

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(StructType(list(self.columns.fields)).add(EPOCH, LongType()).add(DIFF, LongType()), "the sink")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Block by block, in an order that is always the same."""
        for layer in self.layers:
            for block in verify(open_layer(self.home, layer)).blocks:
                columns = [block.column(f"c{i}").cast(field.type) for i, field in enumerate(self.schema) if i < len(self.columns)]
                epochs = pa.array([self.epoch] * block.num_rows, pa.int64())
                yield pa.RecordBatch.from_arrays([*columns, epochs, block.column(COUNT)], schema=self.schema)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches(), self.schema)

    def frame(self) -> DataFrame:
        """An ordinary DataFrame that reads the layers when it is used."""
        return changes_frame(self.spark, self.home, self.epoch, self.columns, self.layers)


class LayerOutlet:
    """Hands epochs to the sinks of a program. Making one opens them all, or none. Each sink is called by one thread at a time."""

    def __init__(self, program: Program, journal: Journal, home: str) -> None:
        self.program, self.journal, self.home = program, journal, home
        self._open: dict[str, Sink] = {}
        self._called = {name: threading.Lock() for name in program.sinks}
        try:
            for name, found in program.sinks.items():
                with user_code(f'sink "{name}" cannot be opened', hint=AGAIN):
                    found.sink.open(journal.run, Identity(program.name, name, journal.image.history))
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

    def deliver(self, sink: str, epoch: Epoch) -> None:
        node = self.program.graph.sinks[sink]
        with self.journal.lock:
            shards = self.journal.image.traces.get(node.trace, {})
            layers = [layer for shard in sorted(shards) for layer in _newest(shards[shard], epoch)]
        changes = LayerChanges(self.program.spark, self.home, self.program.name, epoch, node.schema, tuple(layers))
        hint = f"The epoch will be delivered again. {AGAIN}"
        with self._called[sink]:
            if (target := self._open.get(sink)) is None:
                raise Fenced(f'sink "{sink}" is closed: this run has ended', hint="Start the flow again.")
            with user_code(f'sink "{sink}" did not take epoch {epoch}', hint=hint, passed=HANDLED):
                target.deliver(epoch, changes)


def _close(sink: Sink) -> None:
    sink.close()


def _newest(layers: list[LayerInfo], epoch: Epoch) -> list[LayerInfo]:
    """The layer that ends with this epoch, the last recorded if there are several. It begins there too, but for the first of a sink that
    came with a changed program.
    """
    return [layer for layer in layers if layer.upper == epoch + 1][-1:]
