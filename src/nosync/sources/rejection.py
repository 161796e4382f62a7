"""Why a row of text does not fit its schema, said in Spark SQL over the rejected rows."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.columns import column_named
from nosync.model.columns import RAW, REASON

UNREAD = "_nosync_raw"  # what Spark could not read
WHY = "_nosync_why"  # for what reason, where that is known at once
NO_VALUE = "no value"  # such a reason
SCHEMA = "raw string, reason string, file string, epoch bigint"


def reasons(format: str, schema: StructType, options: dict[str, Any]) -> Column:
    """One sentence per rejected row: the fields that could not be read, or that the whole could not."""
    raw = F.col(UNREAD)
    if format == "json":
        words = {name: F.get_json_object(raw, f"$['{name}']") for name in schema.names}
        whole = "not a JSON object"
    else:
        tokens = F.from_csv(raw, ", ".join(f"c{i} string" for i in range(len(schema))), _strings(options))
        words = {name: tokens[f"c{i}"] for i, name in enumerate(schema.names)}
        whole = f"expected {len(schema)} columns"
    wrong = [
        F.when(
            words[column.name].isNotNull() & column_named(column.name).isNull(),
            F.concat(F.lit(f'{column.name}: "'), words[column.name], F.lit(f'" is no {column.dataType.simpleString()}')),
        )
        for column in schema.fields
    ]
    found = F.concat_ws("; ", *wrong)
    return F.when(found == "", F.lit(whole)).otherwise(found)


def refused(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """What a ledger refused, in the form of rejected rows."""
    row = F.to_json(F.struct(*(column_named(column) for column in columns)))
    rows = rows.where(f"{REASON} is not null").withColumn(RAW, F.coalesce(RAW, row))
    return rows.select(*(F.col(f"_{name}").alias(name) for name in ("raw", "reason", "file", "epoch")))


def _strings(options: dict[str, Any]) -> dict[str, str]:
    """The options that say how a line is cut into tokens."""
    return {name: str(value) for name, value in options.items() if name.lower() in ("sep", "delimiter", "quote", "escape")}
