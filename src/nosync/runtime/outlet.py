"""What a sink gets of an epoch: the rows that it adds and removes, read from the layers that the epoch left."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.journal.journal import Journal
from nosync.model.errors import Failed, NosyncError
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.runtime.program import Program
from nosync.spark.read import changes_frame
from nosync.state.layer import open_layer, verify


@dataclass(frozen=True)
class Changes:
    """One epoch's output: the query's columns, `_epoch`, and `_diff` (how often a row comes, negative: goes)."""

    spark: SparkSession
    home: str
    flow: str
    epoch: Epoch
    columns: StructType
    layers: tuple[LayerInfo, ...]

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(StructType(list(self.columns.fields)).add("_epoch", LongType()).add("_diff", LongType()), "the sink")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Block by block, in an order that is always the same."""
        for layer in self.layers:
            for block in verify(open_layer(self.home, layer)).blocks:
                columns = [block.column(f"c{i}").cast(field.type) for i, field in enumerate(self.schema) if i < len(self.columns)]
                epochs = pa.array([self.epoch] * block.num_rows, pa.int64())
                yield pa.RecordBatch.from_arrays([*columns, epochs, block.column("_count")], schema=self.schema)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches(), self.schema)

    def frame(self) -> DataFrame:
        """An ordinary DataFrame that reads the layers when it is used."""
        return changes_frame(self.spark, self.home, self.epoch, self.columns, self.layers)


class LayerOutlet:
    """Hands epochs to the targets of a program's sinks."""

    def __init__(self, program: Program, journal: Journal, home: str) -> None:
        self.program, self.journal, self.home = program, journal, home
        for name, sink in program.sinks.items():
            sink.target.start(program.name, name)

    def precise(self, sink: str) -> bool:
        return self.program.sinks[sink].target.promise.guarantee == "precise"

    def deliver(self, sink: str, epoch: Epoch) -> None:
        node = self.program.graph.sinks[sink]
        with self.journal.lock:
            shards = self.journal.image.traces.get(node.trace, {})
            layers = [layer for shard in sorted(shards) for layer in _newest(shards[shard], epoch)]
        changes = Changes(self.program.spark, self.home, self.program.name, epoch, node.schema, tuple(layers))
        try:
            self.program.sinks[sink].target.deliver(epoch, changes)
        except NosyncError:
            raise
        except Exception as error:
            words = f"{type(error).__name__}: {error}".splitlines()[0]
            hint = "The epoch will be delivered again: correct the cause and start the flow on the same home."
            raise Failed(f'sink "{sink}" did not take epoch {epoch}: {words}', hint=hint) from error


def _newest(layers: list[LayerInfo], epoch: Epoch) -> list[LayerInfo]:
    """The layer that ends with this epoch, the last recorded if there are several. It begins there too, but for the first of a sink that
    came with a changed program.
    """
    return [layer for layer in layers if layer.upper == epoch + 1][-1:]
