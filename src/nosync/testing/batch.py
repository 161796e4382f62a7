"""The face of a flow, answered by Spark in batch: the program of a flow runs on it unchanged."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from nosync.flow.names import created_view, visible


class Batch:
    """Takes `source`, `view` and `sql` as a `Flow` does; each source is a table, each view an ordinary query over them."""

    def __init__(self, spark: SparkSession, tables: Mapping[str, DataFrame]) -> None:
        self.spark = spark
        self._frames = dict(tables)
        self._tables = frozenset(tables)

    def source(self, name: str, source: Any = None, **settings: Any) -> DataFrame:
        """The table that stands for the source; what it really reads, and its watermark, are ignored."""
        return self._frames[name]

    def view(self, name: str, query: DataFrame, **settings: Any) -> DataFrame:
        self._frames[name] = query
        return query

    def sql(self, statement: str) -> DataFrame:
        created = created_view(statement)
        with visible(self.spark, self._frames):
            query = self.spark.sql(created[1] if created else statement)
        return self.view(created[0], query) if created else query

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(name for name in self._frames if name not in self._tables)

    def answer(self, name: str) -> pa.Table:
        """What Spark says."""
        return self._frames[name].toArrow()
