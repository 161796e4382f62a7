"""What a sink gets of an epoch: the rows that it adds and removes, read from the layers that the epoch left."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.journal.journal import Journal
from nosync.model.columns import COUNT, DIFF, EPOCH
from nosync.model.errors import Failed, NosyncError
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.sink import Identity, Sink
from nosync.runtime.program import Program
from nosync.spark.read import changes_frame
from nosync.state.layer import open_layer, verify


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
    """Hands epochs to the sinks of a program. Making one opens them all, or none."""

    def __init__(self, program: Program, journal: Journal, home: str) -> None:
        self.program, self.journal, self.home = program, journal, home
        self._open: dict[str, Sink] = {}
        try:
            for name, found in program.sinks.items():
                with _failing(f'sink "{name}" cannot be opened', hint="Correct the cause and start the flow on the same home."):
                    found.sink.open(journal.run, Identity(program.name, name, journal.image.history))
                self._open[name] = found.sink
        except NosyncError:
            with suppress(NosyncError):  # what went wrong first is what matters
                self.close()
            raise

    def close(self) -> None:
        """Closes what is open, however the run ended; says afterwards what could not be closed."""
        with ExitStack() as closing:
            while self._open:
                name, sink = self._open.popitem()
                closing.enter_context(_failing(f'sink "{name}" cannot be closed', hint="It has all epochs that it took."))
                closing.callback(sink.close)

    def precise(self, sink: str) -> bool:
        return self.program.sinks[sink].sink.promise.guarantee == "precise"

    def deliver(self, sink: str, epoch: Epoch) -> None:
        node = self.program.graph.sinks[sink]
        with self.journal.lock:
            shards = self.journal.image.traces.get(node.trace, {})
            layers = [layer for shard in sorted(shards) for layer in _newest(shards[shard], epoch)]
        changes = LayerChanges(self.program.spark, self.home, self.program.name, epoch, node.schema, tuple(layers))
        hint = "The epoch will be delivered again: correct the cause and start the flow on the same home."
        with _failing(f'sink "{sink}" did not take epoch {epoch}', hint):
            self._open[sink].deliver(epoch, changes)


@contextmanager
def _failing(what: str, hint: str) -> Iterator[None]:
    """Whatever else somebody's sink raises is an error of theirs."""
    try:
        yield
    except NosyncError:
        raise
    except Exception as error:
        words = f"{type(error).__name__}: {error}".splitlines()[0]
        raise Failed(f"{what}: {words}", hint=hint) from error


def _newest(layers: list[LayerInfo], epoch: Epoch) -> list[LayerInfo]:
    """The layer that ends with this epoch, the last recorded if there are several. It begins there too, but for the first of a sink that
    came with a changed program.
    """
    return [layer for layer in layers if layer.upper == epoch + 1][-1:]
