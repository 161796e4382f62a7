"""The face of a flow, answered by Spark in batch: the program of a flow runs on it unchanged."""

from collections.abc import Hashable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from nosync.flow.names import created_view, mentioned, visible


class Batch:
    """Takes `source`, `view` and `sql` as a `Flow` does; each source is a table, each view an ordinary query over them.

    `versions` identifies, by table, its content: views over tables of the same versions have the same answer.
    """

    def __init__(self, spark: SparkSession, tables: Mapping[str, DataFrame], versions: Mapping[str, Hashable] | None = None) -> None:
        self.spark = spark
        self._frames = dict(tables)
        self._tables = frozenset(tables)
        self._versions = versions
        self._read: dict[str, frozenset[str]] = {name: frozenset([name]) for name in tables}  # by view, the tables it is made of

    def source(self, name: str, source: Any = None, **settings: Any) -> DataFrame:
        """The table that stands for the source; what it really reads, and its watermark, are ignored."""
        return self._frames[name]

    def view(self, name: str, query: DataFrame, **settings: Any) -> DataFrame:
        self._frames[name], self._read[name] = query, self._tables
        return query

    def sql(self, statement: str) -> DataFrame:
        created = created_view(statement)
        text = created[1] if created else statement
        frames = mentioned(text, self._frames)
        with visible(self.spark, frames):
            query = self.spark.sql(text)
        if created:
            self._frames[created[0]] = query
            self._read[created[0]] = frozenset[str]().union(*(self._read[name] for name in frames))
        return query

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(name for name in self._frames if name not in self._tables)

    def answer(self, name: str) -> pa.Table:
        """What Spark says."""
        return self._frames[name].toArrow()

    def version(self, name: str) -> Hashable:
        """Equal for equal answers; None where nobody knows."""
        return None if self._versions is None else frozenset((table, self._versions[table]) for table in self._read[name])
