"""Rows of this process in the JVM and back, and plans that are made once and run again and again over other rows.

A `Leaf` is a scan whose rows are replaced; a `KeptPlan` stands on leaves and is analysed, optimised and planned when it is made, never
again. One whose nodes need nothing of a task runs in the driver's JVM without a job; any other runs as a job of one stage. What Spark may
not run twice (an exchange, a broadcast) is planned anew each time: `KeptPlan` does not take it.
"""

import os
import struct
import tempfile
import weakref
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Catalyst, Java, children, kind
from nosync.bridge.frames import observed_metrics
from nosync.bridge.sessions import settings_in_tasks

MOST_ROWS = 1 << 20  # what comes back from one plan
BATCH_ROWS = 1 << 18
FEW_ROWS = 10_000
SHARED_MEMORY = "/dev/shm"
END = -4
WITHOUT_A_TASK = frozenset({"RDDScanExec", "LocalTableScanExec", "ProjectExec", "FilterExec", "GenerateExec", "ExpandExec", "UnionExec"})
USED_UP = ("Exchange", "Broadcast", "Subquery", "InMemory", "Reused")  # parts of the names of what keeps its result


class TooMany(Exception):
    """More rows than one process shall hold: a job is to compute them, in pieces."""


class Channel:
    """Two files that nobody else sees, one for each direction: py4j takes 40 ms for what does not fit one packet."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark, self.catalyst = spark, Catalyst(spark)
        folder = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
        self._given, self._given_path = tempfile.mkstemp(prefix="nosync-", dir=folder)
        self._taken, taken_path = tempfile.mkstemp(prefix="nosync-", dir=folder)
        self._forget = weakref.finalize(self, _forget, self._given, self._given_path, self._taken)
        jvm = self.catalyst.jvm
        stream = jvm.java.io.FileOutputStream(taken_path)
        os.unlink(taken_path)
        self._position = stream.getChannel()
        self._out = jvm.java.io.DataOutputStream(jvm.java.io.BufferedOutputStream(stream, 1 << 16))
        self._python = _module(jvm, "org.apache.spark.api.python.PythonRDD")
        self._arrow = _module(jvm, "org.apache.spark.sql.execution.arrow.ArrowConverters")
        self._task = _module(jvm, "org.apache.spark.TaskContext")
        self._sql = jvm.PythonSQLUtils
        self.no_rows = self.catalyst.seq([])
        self.zone = str(spark.conf.get("spark.sql.session.timeZone"))

    def give(self, batches: Sequence[pa.RecordBatch], schema: str) -> Java:
        """The rows as Catalyst's. `schema` is Spark's, as JSON; the batches are cast to it already."""
        os.ftruncate(self._given, 0)
        with pa.OSFile(self._given_path, "wb") as file, pa.ipc.new_stream(file, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        read = self._sql.readArrowStreamFromFile(self._given_path)
        return self._sql.toDataFrame(read, schema, self.spark._jsparkSession).queryExecution().analyzed().data()

    def rows_of(self, rdd: Java, partition: Java, schema: Java, arrow: pa.Schema) -> list[pa.RecordBatch]:
        """A partition, computed by this very call."""
        rows = rdd.iterator(partition, self._task.empty()).take(MOST_ROWS + 1)
        return self.take(self._arrow.toBatchIterator(rows, schema, BATCH_ROWS, self.zone, True, False, None), arrow)

    def take(self, batches: Java, arrow: pa.Schema) -> list[pa.RecordBatch]:
        """Arrow batches, as an iterator of the JVM, in this process."""
        self._position.position(0)
        try:
            self._python.writeIteratorToStream(batches, self._out)
            self._out.writeInt(END)
        finally:
            self._out.flush()  # what a failure left behind belongs to nobody
        found = list(self._read(arrow))
        if sum(batch.num_rows for batch in found) > MOST_ROWS:
            raise TooMany
        return found

    def _read(self, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
        position = 0
        while True:
            (length,) = struct.unpack(">i", os.pread(self._taken, 4, position))
            if length == END:
                return
            content = pa.py_buffer(os.pread(self._taken, length, position + 4))
            position += 4 + length
            batch = pa.ipc.read_record_batch(content, arrow)
            if batch.num_rows:
                yield batch

    def collected(self, frame: DataFrame) -> tuple[list[pa.RecordBatch], dict[str, dict[str, int]]]:
        """All rows of a frame by one job, and what was observed on the way."""
        execution = frame._jdf.queryExecution()
        batches = self.collect(frame, execution.executedPlan())
        return batches, observed_metrics(execution)

    def collect(self, frame: DataFrame, executed: Java) -> list[pa.RecordBatch]:
        return self.collect_rdd(frame._jdf.toArrowBatchRdd(executed), arrow_of(frame.schema, self.zone))

    def collect_rdd(self, rdd: Java, arrow: pa.Schema) -> list[pa.RecordBatch]:
        with settings_in_tasks(self.spark):
            found = rdd.collect()
        return self.take(self.catalyst.jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(found).iterator(), arrow)


class Leaf:
    """A scan of rows that are replaced. All of them lie in one partition, so that nothing has to be exchanged."""

    def __init__(self, channel: Channel, schema: StructType) -> None:
        self.schema, self._channel = schema, channel
        self._json, self._arrow = schema.json(), to_arrow_schema(schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
        catalyst, session = channel.catalyst, channel.spark._jsparkSession
        rdd = channel.spark.sparkContext._jsc.parallelize(catalyst.jvm.java.util.ArrayList(), 1).rdd()
        self._partition = rdd.partitions()[0]
        self._replace = getattr(self._partition, "values_$eq")
        java = catalyst.jvm.org.apache.spark.sql.types.DataType.fromJson(self._json)
        scan = session.internalCreateDataFrame(rdd, java, False).queryExecution().analyzed()
        single = _module(catalyst.jvm, "org.apache.spark.sql.catalyst.plans.physical.SinglePartition")
        parts = [scan.productElement(i) for i in range(scan.productArity())]
        self.plan = scan.makeCopy(catalyst.array([single if str(part).startswith("UnknownPartitioning") else part for part in parts]))
        self.filled, self._rows = False, 0

    def put(self, batches: Sequence[pa.RecordBatch]) -> None:
        if batches:
            fitting = [batch if batch.schema.equals(self._arrow) else _cast(batch, self._arrow) for batch in batches]
            self._replace(self._channel.give(fitting, self._json))
        elif self.filled:
            self._replace(self._channel.no_rows)
        self.filled = bool(batches)
        self._rows = sum(batch.num_rows for batch in batches)

    def release(self) -> None:
        """Gives up what would take much memory until the next epoch."""
        if self._rows > FEW_ROWS:
            self.put([])


class KeptPlan:
    """A plan over leaves, ready to run over whatever they hold."""

    def __init__(self, channel: Channel, frame: DataFrame) -> None:
        self.schema, self._channel = frame.schema, channel
        self.arrow = arrow_of(self.schema, channel.zone)
        executed = frame._jdf.queryExecution().executedPlan()
        found = set(_kinds(executed))
        self.lasting = not any(word in name for name in found for word in USED_UP) and executed.subqueriesAll().isEmpty()
        self.without_job = self.lasting and found <= WITHOUT_A_TASK
        if self.without_job:
            self._java = channel.catalyst.jvm.org.apache.spark.sql.types.DataType.fromJson(self.schema.json())
            self._rdd = executed.execute()
            self._partitions = list(self._rdd.partitions())
        elif self.lasting:
            self._rdd = frame._jdf.toArrowBatchRdd(executed)

    def rows(self) -> list[pa.RecordBatch]:
        if not self.without_job:
            return self._channel.collect_rdd(self._rdd, self.arrow)
        parts = [self._channel.rows_of(self._rdd, partition, self._java, self.arrow) for partition in self._partitions]
        return [batch for part in parts for batch in part]


def arrow_of(schema: StructType, zone: str) -> pa.Schema:
    """The types in which Spark hands rows over."""
    return to_arrow_schema(schema, error_on_duplicated_field_names_in_struct=True, timezone=zone)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [array if array.type == field.type else array.cast(field.type) for array, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _kinds(plan: Java) -> Iterator[str]:
    yield kind(plan)
    for child in children(plan):
        yield from _kinds(child)


def _module(jvm: Java, name: str) -> Java:
    """A Scala object."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")


def _forget(given: int, path: str, taken: int) -> None:
    os.close(given)
    os.close(taken)
    os.unlink(path)
