"""Streams of Spark's older interface (V1: `getOffset`, `getBatch`), read by recorded offsets in ordinary batch jobs.

Such a source promises to give the rows between two offsets once more only while it has not been told that they are done with (`commit`).
It keeps what it must know for that in a folder. What `getBatch` returns says of itself that it streams, which Spark runs in streaming
queries only: the same plan is built anew over leaves that say they do not.
"""

import json
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import Catalyst, Java, children, kind
from nosync.bridge.packages import packages
from nosync.bridge.sessions import activate
from nosync.model.errors import Refused

LIMITED = "org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl"
NOWHERE = ""
"""The offset before the first one that a source has said."""


class OlderBatches:
    """A stream as one run reads it, as `bridge.streams.MicroBatches`. One call at a time."""

    def __init__(self, spark: SparkSession, leaf: Java, folder: str) -> None:
        self._catalyst, self._leaf = Catalyst(spark), leaf
        self._jvm = packages(spark)
        self._lock = threading.Lock()
        activate(spark)
        self._source = leaf.dataSource().createSource(folder)
        self._limited = self._is_limited()

    def _is_limited(self) -> bool:
        """Whether it heeds a limit of what one batch may have."""
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return bool(self._jvm.java.lang.Class.forName(LIMITED, True, loader).isInstance(self._source))

    def initial(self) -> str:
        return NOWHERE

    def latest(self, start: str) -> str | None:
        with self._lock:
            if self._limited:
                before = self._offset(start) if start != NOWHERE else None
                found = self._source.latestOffset(before, self._source.getDefaultReadLimit())
            else:
                option = self._source.getOffset()
                found = option.get() if option.isDefined() else None
            return None if found is None else str(found.json())

    def _offset(self, text: str) -> Java:
        return self._jvm.org.apache.spark.sql.execution.streaming.runtime.SerializedOffset(text)

    def read(self, spark: SparkSession, start: str, end: str) -> DataFrame:
        if start == end:
            return spark.createDataFrame([], StructType.fromJson(json.loads(self._leaf.schema().json())))
        with self._lock:
            activate(spark)
            before = self._catalyst.none if start == NOWHERE else self._jvm.scala.Option.apply(self._offset(start))
            batch = self._source.getBatch(before, self._offset(end))
            return self._catalyst.frame(self._at_rest(spark, batch.queryExecution().analyzed()))

    def _at_rest(self, spark: SparkSession, plan: Java) -> Java:
        """The same rows, of a plan that does not stream."""
        if not plan.isStreaming():
            return plan
        below = children(plan)
        if below:
            return self._catalyst.with_children(plan, [self._at_rest(spark, child) for child in below])
        if kind(plan) == "LogicalRDD":
            return spark._jsparkSession.internalCreateDataFrame(plan.rdd(), plan.schema(), False).queryExecution().analyzed()
        names = [str(plan.productElementName(place)) for place in range(plan.productArity())]
        if "isStreaming" not in names:
            hint = "Read it by a connector of the DataSource V2 interface, or write a source: docs/extending.md."
            raise Refused(f"a stream whose rows come as {plan.nodeName()} cannot be read", hint=hint)
        values = self._jvm.java.util.ArrayList()
        for place, name in enumerate(names):
            values.add(False if name == "isStreaming" else plan.productElement(place))
        [build] = [found for found in plan.getClass().getConstructors() if found.getParameterCount() == len(names)]
        return build.newInstance(values.toArray())

    def commit(self, end: str) -> None:
        if end != NOWHERE:
            with self._lock:
                self._source.commit(self._offset(end))

    def stop(self) -> None:
        with self._lock:
            self._source.stop()
