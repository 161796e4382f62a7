"""Rows of one's own source, held against the schema that it declared: they are taken by position, so columns in another order would be
taken for one another, in silence.

Sources that come with nosync are not asked: it takes a call to the JVM for every slice.
"""

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from nosync.model.bound import BoundSource
from nosync.model.columns import DIFF
from nosync.model.errors import Failed
from nosync.model.source import Slice, Source

HINT = "Let it give the declared columns in their order, and last _diff, a bigint: 1 for added, -1 for removed."


def fitting(found: BoundSource, source: Source, name: str, schema: StructType) -> BoundSource:
    """The source, whose rows are as declared or `Failed`."""
    if type(source).__module__.startswith("nosync."):
        return found
    fit = Fitting(found, name, StructType(list(schema.fields)).add(DIFF, LongType()))
    return replace(found, read=fit.read, table=fit.table if found.table is not None else None)


@dataclass(frozen=True)
class Fitting:
    """`schema` is what is expected, `_diff` included."""

    source: BoundSource
    name: str
    schema: StructType

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        frame: Any = self.source.read(spark, slice)
        if not isinstance(frame, DataFrame):
            raise Failed(f'source "{self.name}": read gave a {type(frame).__name__}, not a DataFrame', hint=HINT)
        found, wanted = _columns(frame.schema), _columns(self.schema)
        if found != wanted:
            raise Failed(f'source "{self.name}": read gave {", ".join(found)}, and not {", ".join(wanted)}', hint=HINT)
        return frame

    def table(self, slice: Slice) -> pa.Table | None:
        assert self.source.table is not None
        table: Any = self.source.table(slice)
        if table is None:
            return None
        if not isinstance(table, pa.Table):
            raise Failed(f'source "{self.name}": table gave a {type(table).__name__}, not an Arrow table', hint=HINT)
        if table.column_names != self.schema.names:
            found, wanted = ", ".join(table.column_names), ", ".join(self.schema.names)
            raise Failed(f'source "{self.name}": table gave {found}, and not {wanted}', hint=HINT)
        return table


def _columns(schema: StructType) -> list[str]:
    """Names and types; whether there may be nulls is not held against anybody."""
    return [f"{field.name} {field.dataType.simpleString()}" for field in schema.fields]
