"""Tables of a session as tables that change: their rows come, go and come back, from a seed."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from nosync.model.quoting import quoted
from nosync.testing import Change

MOST_ROWS = 120
EPOCHS = 3
FIXED = {
    "testdata": "select cast(id as int) key, cast(id as string) value from range(1, 101)",
    "arraydata": "values (array(1, 2, 3), array(array(1, 2, 3))), (array(2, 3, 4), array(array(2, 3, 4))) as t(arraycol, nestedarraycol)",
    "mapdata": "values (map(1, 'a1', 2, 'b1', 3, 'c1', 4, 'd1', 5, 'e1')), (map(1, 'a2', 2, 'b2', 3, 'c2', 4, 'd2')),"
    " (map(1, 'a3', 2, 'b3', 3, 'c3')), (map(1, 'a4', 2, 'b4')), (map(1, 'a5')) as t(mapcol)",
    "aggtest": "values (56, 7.8F), (100, 99.097F), (0, 0.09561F), (42, 324.78F) as t(a, b)",
    "onek": "select cast(id as int) unique1, cast((id * 7) % 100 as int) unique2, cast(id % 2 as int) two, cast(id % 4 as int) four,"
    " cast(id % 10 as int) ten, cast(id % 20 as int) twenty, cast(id % 10 as int) hundred, cast(id % 100 as int) thousand,"
    " cast(id % 20 as int) twothousand, cast(id % 50 as int) fivethous, cast(id as int) tenthous, cast(id % 10 * 2 as int) odd,"
    " cast(id % 10 * 2 + 1 as int) even, concat('S', id % 26, 'AAAA') stringu1, concat('T', (id * 7) % 26, 'AAAA') stringu2,"
    " element_at(array('AAAAxx', 'HHHHxx', 'OOOOxx', 'VVVVxx'), int(id % 4 + 1)) string4 from range(100)",
    "tenk1": "select * from onek",
}  # by name: what Spark's suite has ready for all files, cut to a few rows


@dataclass(frozen=True)
class Table:
    """The rows of a name at some point of a file."""

    name: str
    schema: StructType
    rows: tuple[tuple[Any, ...], ...]


def prepare(spark: SparkSession) -> None:
    """The tables and functions that files take for granted."""
    for name, query in FIXED.items():
        spark.sql(query).createOrReplaceTempView(name)
    spark.udf.register("udf", lambda value: None if value is None else str(value), "string")


def words(statement: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w+", statement)}


def mentioned(spark: SparkSession, statements: Sequence[str]) -> tuple[Table, ...]:
    """Those tables and views of a session that statements name and whose rows can be given as values."""
    said = {word for statement in statements for word in words(statement)}
    try:
        names = {str(row.tableName).casefold(): str(row.tableName) for row in spark.sql("show tables").collect()}
    except PySparkException:
        return ()
    found = (_table(spark, name) for folded, name in sorted(names.items()) if folded in said)
    return tuple(table for table in found if table is not None)


def _table(spark: SparkSession, name: str) -> Table | None:
    try:
        frame = spark.table(quoted(name))
        names = [column.lower() for column in frame.columns]
        if not names or len(set(names)) < len(names):
            return None
        rows = tuple(tuple(row) for row in frame.limit(MOST_ROWS).collect())
        plain = StructType([StructField(field.name, field.dataType) for field in frame.schema.fields])
        spark.createDataFrame(rows, plain).toArrow()
    except Exception:  # whatever cannot be handed over stays as it is
        return None
    return Table(name, plain, rows) if rows else None


def changes(tables: Sequence[Table], seed: int) -> list[Change]:
    """Half of the rows first, then the rest while some go, then some more go and some come back."""
    chance = random.Random(seed)
    found: list[tuple[dict[str, list[Any]], dict[str, list[Any]]]] = [({}, {}) for _ in range(EPOCHS)]
    for table in tables:
        for index, row in enumerate(table.rows):
            born = 0 if index == 0 else chance.choice([0, 0, 1])
            _put(found, table.name, row, born, 0)
            if chance.random() < 0.4:
                gone = chance.randint(born + 1, EPOCHS - 1) if born + 1 < EPOCHS else None
                if gone is not None:
                    _put(found, table.name, row, gone, 1)
                    if gone + 1 < EPOCHS and chance.random() < 0.5:
                        _put(found, table.name, row, gone + 1, 0)
    return [Change(added, removed) for added, removed in found]


def _put(found: list[tuple[dict[str, list[Any]], dict[str, list[Any]]]], name: str, row: Any, epoch: int, side: int) -> None:
    found[epoch][side].setdefault(name, []).append(row)


def schemas(tables: Sequence[Table]) -> Mapping[str, StructType]:
    return {table.name: table.schema for table in tables}
