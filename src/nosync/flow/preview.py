"""A look at a query before the flow runs: Spark answers it once, in batch, over the first rows of each source that there are now.

Nothing is taken from a source: a copy of the object is asked, with a folder of its own that is gone afterwards.
"""

import copy
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nosync.bridge.catalyst import AttributeIdentity, Java, children, items, kind
from nosync.bridge.frames import optimized, optimized_as_stream
from nosync.bridge.placeholders import owner
from nosync.compile.compiler import Compiler
from nosync.compile.rewrites.table import rewritten
from nosync.compile.rewrites.watermarked_duplicates import within_all
from nosync.graph.nodes import SourceNode, ViewNode
from nosync.model.columns import DIFF
from nosync.model.errors import Invalid, user_code
from nosync.model.source import Slice, Source

FIRST_ROWS = 1000  # of each source
WAIT_SECONDS = 1.1  # for a source that has nothing yet: a clock ticks within a second


class Untaken:
    """A source of which nothing was taken."""

    latest = None
    skipped: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Slice]:
        return iter(())

    @property
    def marks(self) -> "Untaken":
        return self

    def among(self, texts: Sequence[str]) -> set[str]:
        return set()


@dataclass
class Preview:
    """Of one flow. `queries` are those behind its views."""

    compiler: Compiler
    sources: Mapping[str, Source]
    queries: Mapping[str, DataFrame]

    def of(self, query: DataFrame) -> DataFrame:
        """An ordinary DataFrame over the first rows."""
        catalyst = self.compiler.catalyst
        return catalyst.frame(self._filled(rewritten(catalyst, optimized_as_stream(query))))

    def _filled(self, plan: Java) -> Java:
        """The plan with rows in place of placeholders."""
        below = children(plan)
        if kind(plan) == "DeduplicateWithinWatermark":
            return within_all(self.compiler.catalyst, plan, self._filled(below[0]))
        if below:
            return self.compiler.catalyst.with_children(plan, [self._filled(child) for child in below])
        node = self.compiler.leaves.get(plan.rdd().id()) if kind(plan) == "LogicalRDD" else None
        if node is None:
            if (flow := owner(self.compiler.catalyst.spark, plan)) is not None:
                words = f'the query reads a DataFrame of another declaration of flow "{flow}"'
                raise Invalid(words, hint="Ask the flow that declared it.")
            return plan
        if isinstance(node, ViewNode) and node.name in self.queries:
            rows = self.of(self.queries[node.name])
        elif isinstance(node, SourceNode) and node.name in self.sources:
            rows = self._first_rows(node)
        else:
            words = f'"{node.name}" has rows only while the flow runs: what a source of changes adds up to, or what it rejects'
            raise Invalid(words, hint="Preview a query over another source, or start the flow.")
        found = optimized(rows)
        targets = [AttributeIdentity.of(attribute) for attribute in items(plan.output())]
        return self.compiler.catalyst.renamed(items(found.output()), targets, found)

    def _first_rows(self, node: SourceNode) -> DataFrame:
        with user_code(f'source "{node.name}" cannot be previewed', hint="Start the flow instead."):
            rows = self._read(node.name)
        rows = rows.drop(DIFF).limit(FIRST_ROWS)
        return rows.withColumn(node.stamp, F.lit(time.time()).cast("timestamp")) if node.stamp else rows

    def _read(self, name: str) -> DataFrame:
        source, spark = copy.copy(self.sources[name]), self.compiler.catalyst.spark
        until = time.monotonic() + WAIT_SECONDS
        with tempfile.TemporaryDirectory() as folder:
            source.start(Path(folder), Untaken())
            while (slice := source.available()) is None:
                if time.monotonic() > until:
                    return spark.createDataFrame([], source.declare(name, spark)).withColumn(DIFF, F.lit(1))
                time.sleep(0.05)
            return source.read(spark, slice)

