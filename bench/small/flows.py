"""The flows: each declares its views over rows (k, g, x) of a source in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SCHEMA = "k bigint, g int, x double"
ROWS, KEYS = 1_000, 100_000


@dataclass(frozen=True)
class Case:
    """`before` is what an epoch took before plans were kept, `aim` what it is to take: milliseconds. `stream`: the query for Spark."""

    declare: Callable[[Any, DataFrame], object]
    before: float
    aim: float
    stream: Callable[[DataFrame], DataFrame] | None = None


def filtered(rows: DataFrame) -> DataFrame:
    return rows.where("x > 0.5").select("k", (F.col("x") * 2).alias("y"))


def summed(rows: DataFrame, by: str = "k", of: str = "x") -> DataFrame:
    return rows.groupBy(by).agg(F.sum(of).alias("total"), F.count("*").alias("n"))


def levels(flow: Any, rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Three aggregates, each over the one before; the last two."""
    first = flow.view("first", summed(rows))
    second = flow.view("second", first.groupBy((F.col("k") % 1000).alias("k")).agg(F.sum("n").alias("n"), F.max("total").alias("most")))
    return second, flow.view("third", second.groupBy((F.col("k") % 10).alias("k")).agg(F.sum("n").alias("n"), F.avg("most").alias("most")))


def joined(flow: Any, rows: DataFrame) -> None:
    second, third = levels(flow, rows)
    flow.view("joined", second.join(third.withColumnsRenamed({"k": "j", "n": "m", "most": "mean"}), F.expr("k % 10 = j")))


def side_by_side(count: int) -> Callable[[Any, DataFrame], object]:
    def declare(flow: Any, rows: DataFrame) -> None:
        for number in range(count):
            flow.view(f"v{number}", summed(rows.where(F.col("k") % (number + 2) != 0), by="g"))

    return declare


CASES = {
    "a stateless filter": Case(lambda flow, rows: flow.view("v", filtered(rows)), 118, 35, filtered),
    "one aggregate": Case(lambda flow, rows: flow.view("v", summed(rows)), 150, 45, summed),
    "aggregates on aggregates, 3 levels": Case(levels, 280, 90),
    "the same with a join of two of them": Case(joined, 590, 150),
    "10 views side by side": Case(side_by_side(10), 582, 120),
    "30 views side by side": Case(side_by_side(30), 1636, 250),
}
