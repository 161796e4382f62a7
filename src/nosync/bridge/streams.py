"""Spark's own streams (`spark.readStream`), taken out of a plan and read by recorded offsets in ordinary batch jobs.

A source of the DataSource V2 interface says where it stands as JSON, and reads what lies between two such offsets as often as it is asked.
Nothing of Structured Streaming runs here: no query, no checkpoint of offsets.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import AttributeIdentity, Catalyst, Java, children, items, kind
from nosync.bridge.errors import JavaError, root_message
from nosync.bridge.frames import analyzed
from nosync.bridge.packages import packages
from nosync.bridge.sessions import activate
from nosync.model.errors import Invalid, Unavailable

V2, V1, WATERMARK = "StreamingRelationV2", "StreamingRelation", "EventTimeWatermark"
STREAMING = "org.apache.spark.sql.connector.read.streaming"
NOT_NOW = (
    "java.io.IOException",
    "java.util.concurrent.TimeoutException",
    "org.apache.kafka.common.errors.RetriableException",
)


def is_stream(frame: DataFrame) -> bool:
    return bool(analyzed(frame).isStreaming())


def streaming_leaves(plan: Java) -> list[Java]:
    """The streams that a plan reads."""
    if not plan.isStreaming():
        return []
    below = children(plan)
    return [leaf for child in below for leaf in streaming_leaves(child)] if below else [plan]


def same_stream(one: Java, other: Java) -> bool:
    """Whether two leaves came from one `load()`."""
    if kind(one) != kind(other):
        return False
    first, second = (leaf.table() if kind(leaf) == V2 else leaf.dataSource() for leaf in (one, other))
    return bool(first.equals(second)) and (kind(one) == V1 or bool(one.extraOptions().equals(other.extraOptions())))


def over(
    catalyst: Catalyst,
    plan: Java,
    rows_of: Callable[[Java], DataFrame],
    note: Callable[[DataFrame, str, str], object],
) -> Java:
    """The same plan over other rows: `rows_of` says which stand for a stream. What is bound to a column stays bound.

    Watermarks are taken out and noted: Spark has marked whatever came of their columns.
    """
    if not plan.isStreaming():
        return plan
    below = children(plan)
    if not below:
        rows = analyzed(rows_of(plan))
        named = {str(attribute.name()): attribute for attribute in items(rows.output())}
        targets = [AttributeIdentity.of(attribute) for attribute in items(plan.output())]
        missing = [target.name for target in targets if target.name not in named]
        if missing:
            raise Invalid(f'the source that reads this stream has no column "{missing[0]}"', hint="Use what flow.source returned for it.")
        return catalyst.renamed([named[target.name] for target in targets], targets, rows)
    inner = [over(catalyst, child, rows_of, note) for child in below]
    if kind(plan) == WATERMARK:
        millis = catalyst.logical.EventTimeWatermark.getDelayMs(plan.delay())
        name = str(plan.eventTime().name()).replace("`", "``")
        note(catalyst.frame(inner[0]), f"`{name}`", f"{millis} milliseconds")
        return inner[0]
    return catalyst.with_children(plan, inner)


@dataclass(frozen=True)
class Described:
    """What a leaf says of itself. The names of `options` are in small letters. `old`: read by Spark's older interface, as files are."""

    format: str
    options: dict[str, str]
    paths: tuple[str, ...]
    schema: StructType
    old: bool


def described(leaf: Java) -> Described:
    schema = StructType.fromJson(json.loads(leaf.schema().json()))
    if kind(leaf) == V2:
        given = {str(entry.getKey()).lower(): str(entry.getValue()) for entry in leaf.extraOptions().entrySet()}
        return Described(str(leaf.sourceName()), given, (), schema, old=False)
    if kind(leaf) != V1:
        raise Invalid(f"a stream of the kind {leaf.nodeName()} cannot be taken", hint="Pass what spark.readStream...load() returned.")
    source = leaf.dataSource()
    pairs = items(source.options().toSeq())
    return Described(
        str(source.className()),
        {str(pair._1()).lower(): str(pair._2()) for pair in pairs},
        tuple(map(str, items(source.paths()))),
        schema,
        old=True,
    )


class MicroBatches:
    """A stream as one run reads it. `folder` is where the source may keep what it must remember, as in a checkpoint.

    One call at a time: some sources speak to a process of theirs.
    """

    def __init__(self, spark: SparkSession, leaf: Java, folder: str) -> None:
        self._catalyst, self._leaf = Catalyst(spark), leaf
        self._jvm = packages(spark)
        self._lock = threading.Lock()
        activate(spark)
        self._scan = leaf.table().newScanBuilder(leaf.extraOptions()).build()
        self._stream = self._scan.toMicroBatchStream(folder)
        self._limited = self._is(self._stream, f"{STREAMING}.SupportsAdmissionControl")

    @property
    def kind(self) -> str:
        """The class of the source."""
        return kind(self._stream)

    def _is(self, value: Java, name: str) -> bool:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return bool(self._jvm.java.lang.Class.forName(name, True, loader).isInstance(value))

    def initial(self) -> str:
        with self._lock:
            return str(self._stream.initialOffset().json())

    def latest(self, start: str) -> str | None:
        """How far one epoch may read, by the limits that the user has set; None for nothing new."""
        with self._lock:
            if self._limited:
                found = self._stream.latestOffset(self._stream.deserializeOffset(start), self._stream.getDefaultReadLimit())
            else:
                found = self._stream.latestOffset()
            return None if found is None else str(found.json())

    def read(self, spark: SparkSession, start: str, end: str) -> DataFrame:
        with self._lock:
            activate(spark)
            offsets = [self._stream.deserializeOffset(offset) for offset in (start, end)]
            physical = self._jvm.org.apache.spark.sql.execution
            none = self._catalyst.none
            scan = physical.datasources.v2.MicroBatchScanExec(self._leaf.output(), self._scan, self._stream, *offsets, none, none)
            rows = physical.ColumnarToRowExec(scan).execute() if scan.supportsColumnar() else scan.execute()
            return DataFrame(spark._jsparkSession.internalCreateDataFrame(rows, self._leaf.schema(), False), spark)

    def commit(self, end: str) -> None:
        """The source may forget what lies before."""
        with self._lock:
            self._stream.commit(self._stream.deserializeOffset(end))

    def stop(self) -> None:
        with self._lock:
            self._stream.stop()


def not_now(error: Exception) -> bool:
    """Whether an error of the JVM is one of the network, which may be over soon."""
    cause = error.java_exception if isinstance(error, JavaError) else None
    while cause is not None:
        sort = cause.getClass()
        while sort is not None:
            if sort.getName() in NOT_NOW:
                return True
            sort = sort.getSuperclass()
        cause = cause.getCause()
    return False


def explained(what: str, error: JavaError) -> Exception:
    """What a source of Spark's has raised, in one line."""
    words = f"{what}: {root_message(error).strip().splitlines()[0]}"
    return Unavailable(words, hint="It is asked again.") if not_now(error) else Invalid(words, hint="Correct its options.")
