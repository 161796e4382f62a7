"""The state of a checkpoint, through Spark's own reader of it: which operators have some, what their rows look like, and the rows."""

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.errors import words_of
from nosync.importing.checkpoint import Checkpoint
from nosync.model.errors import Invalid

AGGREGATE, DEDUPLICATION, WITHIN_WATERMARK = "stateStoreSave", "dedupe", "dedupeWithinWatermark"
READ = (AGGREGATE, DEDUPLICATION, WITHIN_WATERMARK)
WORDS = {
    AGGREGATE: "an aggregate",
    DEDUPLICATION: "dropDuplicates",
    WITHIN_WATERMARK: "dropDuplicatesWithinWatermark",
    "symmetricHashJoin": "a join of streams",
    "sessionWindowStateStoreSaveExec": "session windows",
    "flatMapGroupsWithState": "flatMapGroupsWithState",
    "applyInPandasWithState": "applyInPandasWithState",
    "transformWithStateExec": "transformWithState",
    "transformWithStateInPandasExec": "transformWithStateInPandas",
    "transformWithStateInPySparkExec": "transformWithState",
    "globalLimit": "a limit",
}


@dataclass(frozen=True)
class StoredState:
    """One stateful operator of the query. `keys` and `values` are the columns of its state, none where that is not read here."""

    number: int
    operator: str
    keys: StructType
    values: StructType

    @property
    def said(self) -> str:
        keys = f" by {', '.join(self.keys.names)}" if self.keys.names else ""
        return f"{WORDS.get(self.operator, self.operator)}{keys} (operator {self.number})"


def stored_in(spark: SparkSession, checkpoint: Checkpoint) -> list[StoredState]:
    """Every operator that has state."""
    if not (checkpoint.path / "state").is_dir():
        return []
    try:
        rows = spark.read.format("state-metadata").load(str(checkpoint.path)).select("operatorId", "operatorName").distinct().collect()
        return [_stored(spark, checkpoint, row.operatorId, row.operatorName) for row in sorted(rows)]
    except PySparkException as error:
        hint = "Spark must be able to read it: it is of this version of Spark, or an earlier one."
        raise Invalid(f'the state of "{checkpoint.path}" cannot be read: {words_of(error)}', hint=hint) from None


def _stored(spark: SparkSession, checkpoint: Checkpoint, number: int, operator: str) -> StoredState:
    if operator not in READ:
        return StoredState(number, operator, StructType(), StructType())
    schema = rows_of(spark, checkpoint, number).schema
    keys, values = schema["key"].dataType, schema["value"].dataType
    assert isinstance(keys, StructType) and isinstance(values, StructType)
    return StoredState(number, operator, keys, values)


def rows_of(spark: SparkSession, checkpoint: Checkpoint, number: int) -> DataFrame:
    """The state of an operator: `key`, `value` and the number of the partition."""
    reader = spark.read.format("statestore").option("operatorId", number).option("batchId", checkpoint.batch)
    return reader.load(str(checkpoint.path))
