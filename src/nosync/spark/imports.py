"""State that was imported (`nosync import`): what operators get in the first epoch in the place of rows.

    input/~imported/<random>.arrow   in a home, named by the first opening: Arrow IPC with one column, "blob", a value to a record batch

Each blob is an Arrow stream of one batch: groups in the form of a layer of upserts for accumulators, rows as they are fed to it for an
operator that keeps rows.

It cannot be had again, so it stays as long as its home, and is on a tier before the first record that names it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from nosync.bridge.arrow import arrow_schema
from nosync.graph.operators import Operator
from nosync.model.errors import reading
from nosync.model.store import checked
from nosync.spark.schemas import BLOBS
from nosync.spark.steps.accumulate_task import AccumulateTask, packed
from nosync.spark.task import Batches

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob

STORED = pa.schema([("blob", pa.binary())])
RESTORE = "Start again: it is fetched from the remote if that has it. Else import the checkpoint once more, into another home."
Places = tuple[tuple[str, int], ...]


def places_of(home: str, names: Iterable[str]) -> Places:
    """Each blob's file and number."""
    found: list[tuple[str, int]] = []
    for path in (str(Path(home) / checked(name)) for name in names):
        with reading(f'"{path}", imported state,', RESTORE):
            found += [(path, number) for number in range(_opened(path).num_record_batches)]
    return tuple(found)


def _opened(path: str) -> pa.RecordBatchFileReader:
    try:
        return pa.ipc.open_file(pa.memory_map(path))
    except OSError as error:  # Arrow's word for a file that is cut off, too
        raise ValueError(str(error)) from error


def blob_in(path: str, number: int) -> pa.RecordBatch:
    """A blob of a file, held to what it says of itself: `ValueError` where offsets lead out of it."""
    try:
        stored = _opened(path).get_batch(number)
        stored.validate(full=True)
        if stored.schema != STORED or stored.num_rows != 1:
            raise ValueError(f"record batch {number} holds no blob")
        found = pa.ipc.open_stream(stored.column(0)[0].as_buffer()).read_next_batch()
        found.validate(full=True)
    except OSError as error:
        raise ValueError(str(error)) from error
    return found


@dataclass(frozen=True)
class ImportedTask:
    """Tasks are numbered by the blobs that they read."""

    places: Places
    accumulate: AccumulateTask | None = None
    schema: pa.Schema | None = None

    def groups(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """Accumulators, cut by shard."""
        assert self.accumulate is not None
        for batch in self._read(batches):
            yield from packed(self.accumulate.groups_in(batch), self.accumulate.work.shards)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        assert self.schema is not None
        for batch in self._read(batches):
            columns = [batch.column(field.name).cast(field.type) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _read(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for path, number in (self.places[i] for batch in batches for i in batch.column(0).to_pylist()):
            with reading(f'"{path}", imported state,', RESTORE):
                found = blob_in(path, number)
            yield found


def groups(job: "EpochJob", names: Sequence[str], task: AccumulateTask, declared: StructType) -> DataFrame:
    """The change that imported accumulators make."""
    places = places_of(job.context.home, names)
    blobs = _numbers(job, places).mapInArrow(ImportedTask(places, task).groups, BLOBS)
    return blobs.repartitionById(job.context.shards, job.context.blob_shard).mapInArrow(task.reduce_blobs, declared)


def fed(job: "EpochJob", node: Operator) -> DataFrame:
    """What an operator is fed with: its rows, or those that were imported for it."""
    rows = job.rows(node.feed.piece)
    if node.name not in job.imported:
        return rows
    places = places_of(job.context.home, job.imported[node.name])
    return _numbers(job, places).mapInArrow(ImportedTask(places, schema=arrow_schema(rows.schema, node.name)).rows, rows.schema)


def _numbers(job: "EpochJob", places: Places) -> DataFrame:
    return job.context.session.range(0, len(places), 1, max(1, len(places)))
