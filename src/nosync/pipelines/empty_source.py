"""A source without rows: a flow needs one, though all that its views read may be constants."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, LongType, StructType

from nosync.model.columns import DIFF
from nosync.model.source import Slice, Taken

SCHEMA = StructType().add("begun", BooleanType())


@dataclass(eq=False)
class EmptySource:
    """One slice without rows, ever: the first epoch brings what is constant."""

    append_only: bool = True
    begun: bool = False

    def declare(self, name: str, spark: SparkSession) -> StructType:
        return SCHEMA

    def start(self, folder: Path, taken: Taken) -> None:
        self.begun = taken.latest is not None

    def available(self) -> Slice | None:
        if self.begun:
            return None
        self.begun = True
        return {"begun": True}

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        return spark.createDataFrame([], StructType([*SCHEMA]).add(DIFF, LongType()))
