"""Rows of this process in the JVM and back, and plans that are made once and run again and again over other rows.

A `Leaf` is a scan whose rows are replaced; a `KeptPlan` stands on leaves and is analysed, optimised and planned when it is made, never
again. One whose nodes need nothing of a task runs in the driver's JVM without a job; any other runs as a job of one stage. What Spark may
not run twice (an exchange, a broadcast) is planned anew each time: `KeptPlan` does not take it.
"""

import os
import struct
import tempfile
from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Catalyst, Java
from nosync.bridge.frames import observed_metrics
from nosync.bridge.releasing import when_gone
from nosync.bridge.sessions import settings_in_tasks
from nosync.bridge.trees import helper

MOST_ROWS = 1 << 20  # what comes back from one plan
FEW_ROWS = 10_000
SHARED_MEMORY = "/dev/shm"
END = -4
WITHOUT_A_TASK = frozenset({"RDDScanExec", "LocalTableScanExec", "ProjectExec", "FilterExec", "GenerateExec", "ExpandExec", "UnionExec"})
USED_UP = ("Exchange", "Broadcast", "Subquery", "InMemory", "Reused")  # parts of the names of what keeps its result


class TooMany(Exception):
    """More rows than one process shall hold: a job is to compute them, in pieces."""


class Channel:
    """Two files that nobody else sees, one for each direction: py4j takes 40 ms for what does not fit one packet.

    What is put into leaves goes over with the next plan that runs, in the same call.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.catalyst = spark, Catalyst(spark)
        folder = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
        self._given, given_path = tempfile.mkstemp(prefix="nosync-", dir=folder)
        self._taken, taken_path = tempfile.mkstemp(prefix="nosync-", dir=folder)
        self.zone = str(spark.conf.get("spark.sql.session.timeZone"))
        self.java = helper(spark, "Held").within(spark._jsparkSession, given_path, taken_path, self.zone)
        when_gone(self, partial(_forget, self._given, self._taken, self.java))
        os.unlink(given_path)
        os.unlink(taken_path)
        self._pending: dict[int, Sequence[pa.RecordBatch]] = {}

    def put(self, leaf: int, batches: Sequence[pa.RecordBatch]) -> None:
        """The batches have the leaf's types already."""
        self._pending[leaf] = batches

    def run(self, plans: "Sequence[KeptPlan]") -> list[list[pa.RecordBatch]]:
        """The rows of each plan, all computed by this very call."""
        rows = max((plan.rows_below for plan in plans), default=0)
        self.java.run(self._give(), " ".join(str(plan.number) for plan in plans), MOST_ROWS + 1, rows > FEW_ROWS)
        found, position = [], 0
        for plan in plans:
            batches, position = self._read(plan.arrow, position)
            found.append(batches)
        return found

    def flush(self) -> None:
        """From here on jobs see what was put into leaves."""
        if self._pending:
            self.run([])

    def _give(self) -> str:
        """Writes what is pending, and says of which leaf how many batches there are."""
        pending, self._pending = self._pending, {}
        os.ftruncate(self._given, 0)
        os.lseek(self._given, 0, os.SEEK_SET)
        for batches in pending.values():
            for batch in batches:
                content = batch.serialize()
                _write(self._given, struct.pack(">i", content.size), content)
        return " ".join(f"{leaf} {len(batches)}" for leaf, batches in pending.items())

    def _read(self, arrow: pa.Schema, position: int) -> tuple[list[pa.RecordBatch], int]:
        """One plan's batches, and where those of the next one begin."""
        found: list[pa.RecordBatch] = []
        while True:
            (length,) = struct.unpack(">i", os.pread(self._taken, 4, position))
            position += 4
            if length == END:
                break
            content = pa.py_buffer(os.pread(self._taken, length, position))
            position += length
            batch = pa.ipc.read_record_batch(content, arrow)
            if batch.num_rows:
                found.append(batch)
        if sum(batch.num_rows for batch in found) > MOST_ROWS:
            raise TooMany
        return found, position

    def collected(self, frame: DataFrame) -> tuple[list[pa.RecordBatch], dict[str, dict[str, int]]]:
        """All rows of a frame by one job, and what was observed on the way."""
        execution = frame._jdf.queryExecution()
        batches = self.collect_rdd(frame._jdf.toArrowBatchRdd(execution.executedPlan()), arrow_of(frame.schema, self.zone))
        return batches, observed_metrics(execution)

    def collect_rdd(self, rdd: Java, arrow: pa.Schema) -> list[pa.RecordBatch]:
        self.flush()
        with settings_in_tasks(self.spark):
            self.java.writeCollected(rdd.collect())
        return self._read(arrow, 0)[0]


class Leaf:
    """A scan of rows that are replaced. All of them lie in one partition, so that nothing has to be exchanged."""

    def __init__(self, channel: Channel, schema: StructType) -> None:
        self.schema, self._channel = schema, channel
        self._arrow = to_arrow_schema(schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
        self._number = channel.java.leaf(schema.json())
        self.plan = channel.java.scan(self._number)
        self.filled, self.rows = False, 0

    def put(self, batches: Sequence[pa.RecordBatch]) -> None:
        if batches:
            self._channel.put(self._number, [_cast(batch, self._arrow) for batch in batches])
        elif self.filled:
            self._channel.put(self._number, [])
        self.filled = bool(batches)
        self.rows = sum(batch.num_rows for batch in batches)

    def release(self) -> None:
        """Gives up what would take much memory until the next epoch."""
        if self.rows > FEW_ROWS:
            self.put([])


class KeptPlan:
    """A plan over leaves, ready to run over whatever they hold."""

    def __init__(self, channel: Channel, frame: DataFrame, leaves: Sequence[Leaf]) -> None:
        self.schema, self._channel, self._leaves = frame.schema, channel, leaves
        self.arrow = arrow_of(self.schema, channel.zone)
        executed = frame._jdf.queryExecution().executedPlan()
        found = set(channel.java.kinds(executed).split())
        self.lasting = not any(word in name for name in found for word in USED_UP)
        self.without_job = self.lasting and found <= WITHOUT_A_TASK
        if self.without_job:
            self.number = channel.java.plan(executed, self.schema.json())
        elif self.lasting:
            self._rdd = frame._jdf.toArrowBatchRdd(executed)

    @property
    def rows_below(self) -> int:
        """How many rows it is to be computed from."""
        return sum(leaf.rows for leaf in self._leaves)

    def rows(self) -> list[pa.RecordBatch]:
        return self._channel.run([self])[0] if self.without_job else self._channel.collect_rdd(self._rdd, self.arrow)


def arrow_of(schema: StructType, zone: str) -> pa.Schema:
    """The types in which Spark hands rows over."""
    return to_arrow_schema(schema, error_on_duplicated_field_names_in_struct=True, timezone=zone)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    columns = [array if array.type == field.type else array.cast(field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _write(file: int, *parts: bytes | pa.Buffer) -> None:
    for part in parts:
        rest = memoryview(part)
        while rest.nbytes:
            rest = rest[os.write(file, rest) :]


def _forget(given: int, taken: int, java: Java) -> None:
    os.close(given)
    os.close(taken)
    java.close()
