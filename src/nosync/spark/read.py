"""A view as a DataFrame: one task a shard reads the layers of its cover, whenever the DataFrame is used."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from nosync.bridge.arrow import arrow_schema
from nosync.history.changes import ChangeStep, batches
from nosync.history.reader import rows
from nosync.history.record import ViewRecord
from nosync.model.columns import COUNT, DIFF, EPOCH, TIME
from nosync.model.errors import Corrupt
from nosync.model.identifiers import Epoch
from nosync.model.layers import Covers, LayerInfo
from nosync.model.places import Sharing
from nosync.model.shards import shard_ranges
from nosync.peers.host import worker_host
from nosync.recovery.suspicion import suspect
from nosync.spark.task import LAYERS, emitted
from nosync.state.cover import LayerRange, layer_ranges
from nosync.state.layer import Layer, verify
from nosync.state.merge import summed
from nosync.state.partial_layer import opened
from nosync.store.disk import LocalDisk


def _verified(home: str, info: LayerInfo, sharing: Sharing | None) -> Layer:
    """The layer, every byte of it as it was written. Damage is noted in the home, so that the next start looks at everything."""
    if sharing is not None:
        return worker_host(sharing).open(info, lambda root, info: verify(LAYERS.open(root, info)))
    try:
        return verify(LAYERS.open(home, info))
    except Corrupt as error:
        suspect(LocalDisk(Path(home)), error)
        raise


@dataclass(frozen=True)
class ReadTask:
    """Reads the shards whose numbers it is given."""

    home: str
    view: ViewRecord
    covers: Covers
    shards: int
    schema: pa.Schema
    sharing: Sharing | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                wanted = layer_ranges(self.covers, shard_ranges(self.shards)[shard])
                cover = opened(wanted, lambda info: _verified(self.home, info, self.sharing))
                for found in rows(self.view, cover, owns_whole=shard == 0):
                    yield from emitted(self.schema, found.columns)


def view_frame(
    spark: SparkSession, home: str, view: ViewRecord, covers: Covers, shards: int, schema: StructType, sharing: Sharing | None = None
) -> DataFrame:
    """The rows of the covers. Layers are immutable: the DataFrame shows the same epoch however often it is used."""
    numbered = StructType([StructField(f"c{i}", field.dataType) for i, field in enumerate(schema.fields)])
    task = ReadTask(home, view, covers, shards, arrow_schema(numbered, "the view"), sharing)
    return spark.range(0, shards, 1, shards).mapInArrow(task, numbered).toDF(*schema.names)  # names may repeat


@dataclass(frozen=True)
class ChangesTask:
    """Reads the pieces whose numbers it is given, each of one or more layers: every row with how often it comes or goes."""

    home: str
    epoch: Epoch
    pieces: tuple[tuple[LayerInfo, ...], ...]
    schema: pa.Schema
    sharing: Sharing | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for block in summed([_verified(self.home, layer, self.sharing) for layer in self.pieces[number]]):
                    columns = [block.column(f"c{i}") for i in range(len(self.schema) - 2)]
                    epochs = pa.array([self.epoch] * block.num_rows, pa.int64())
                    yield from emitted(self.schema, [*columns, epochs, block.column(COUNT)])


def changes_frame(
    spark: SparkSession, home: str, epoch: Epoch, columns: StructType, pieces: tuple[tuple[LayerInfo, ...], ...],
    sharing: Sharing | None = None,
) -> DataFrame:  # fmt: skip
    """What one epoch adds and removes, or some do that count as one, with `_epoch` and `_diff`."""
    fields = [StructField(field.name, field.dataType) for field in columns.fields]
    schema = StructType([*fields, StructField(EPOCH, LongType()), StructField(DIFF, LongType())])
    count = max(len(pieces), 1)
    task = ChangesTask(home, epoch, pieces, arrow_schema(schema, "the sink"), sharing)
    return spark.range(0, len(pieces), 1, count).mapInArrow(task, schema)


@dataclass(frozen=True)
class StepsTask:
    """Reads the steps whose numbers it is given."""

    home: str
    view: ViewRecord
    steps: tuple[ChangeStep, ...]
    schema: pa.Schema
    sharing: Sharing | None = None

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for found in batches(self.view, self.steps[number], self._open):
                    yield from emitted(self.schema, found.columns)

    def _open(self, parts: Sequence[LayerRange]) -> list[Layer]:
        return opened(parts, lambda info: _verified(self.home, info, self.sharing))


def steps_frame(
    spark: SparkSession, home: str, view: ViewRecord, steps: Sequence[ChangeStep], columns: StructType, sharing: Sharing | None = None
) -> DataFrame:
    """What some epochs add to a view and take from it, with `_epoch`, `_time` and `_diff`."""
    fields = [StructField(field.name, field.dataType) for field in columns.fields]
    said = [StructField(EPOCH, LongType()), StructField(TIME, TimestampType()), StructField(DIFF, LongType())]
    schema = StructType([*fields, *said])
    parts = min(max(len(steps), 1), spark.sparkContext.defaultParallelism * 2)
    task = StepsTask(home, view, tuple(steps), arrow_schema(schema, "the changes"), sharing)
    return spark.range(0, len(steps), 1, parts).mapInArrow(task, schema)
