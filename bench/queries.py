"""The queries every engine runs, and the totals by which their answers are compared with the truth.

A query is ordinary PySpark, the same object for Spark and for nosync. `totals` turns its result into a few numbers; the names are
those of `truth` in `bench.inputs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.inputs import FIRST_FILE_AT


@dataclass(frozen=True)
class Query:
    """How to ask, how to sum up the answer, and how to read the same answer out of Spark's state store, where that is possible.

    `mode` is Spark's output mode; with a watermark, "append" and `emit="final"` mean the same. Totals that the truth has and the query
    has not are not asked.
    """

    ask: Callable[[DataFrame], DataFrame]
    totals: Callable[[DataFrame], DataFrame]
    from_state: Callable[[DataFrame], DataFrame] | None = None
    mode: str = "update"
    watermark: tuple[str, str] | None = None


def _ask_plain(events: DataFrame) -> DataFrame:
    return events.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def _plain_totals(result: DataFrame) -> DataFrame:
    return result.agg(
        F.count("*").alias("groups"),
        F.sum("n").alias("count"),
        F.sum("total").alias("total"),
        F.sum(F.col("key") * F.col("n")).alias("weighted_count"),
        F.sum(F.col("key") * F.col("total")).alias("weighted_total"),
    )


def _plain_from_state(state: DataFrame) -> DataFrame:
    return _renamed(state, "key bigint", "n bigint, total bigint")


def _ask_realistic(events: DataFrame) -> DataFrame:
    return events.groupBy("customer").agg(
        F.sum("amount").alias("paid"),
        F.sum("weight").alias("weight"),
        F.avg("score").alias("score"),
        F.min("weight").alias("lowest"),
        F.max("at").alias("latest"),
    )


def _realistic_totals(result: DataFrame) -> DataFrame:
    cents = (F.col("paid") * 100).cast("decimal(20,0)")
    mark = F.crc32(F.coalesce("customer", F.lit(""))).cast("decimal(10,0)")
    return result.agg(
        F.count("*").alias("groups"),
        F.sum(cents).alias("cents"),
        F.sum(cents * mark).alias("weighted_cents"),
        F.sum("weight").alias("weight"),
        F.sum("score").alias("averages"),
        F.sum("lowest").alias("lowest"),
        F.sum(F.unix_micros("latest") - FIRST_FILE_AT * 1_000_000).alias("latest"),
    )


def _realistic_from_state(state: DataFrame) -> DataFrame:
    buffers = "paid decimal(22,2), empty boolean, weight double, scores double, scored bigint, lowest double, latest timestamp"
    return _renamed(state, "customer string", buffers).withColumn("score", F.expr("if(scored > 0, scores / scored, null)"))


def _renamed(state: DataFrame, key: str, value: str) -> DataFrame:
    """The store's buffers bear names like `sum` twice over, which Spark then confuses: a cast names them by position."""
    named = state.select(F.col("key").cast(f"struct<{key}>").alias("key"), F.col("value").cast(f"struct<{value}>").alias("value"))
    return named.select("key.*", "value.*")


PLAIN = {
    "plain": Query(_ask_plain, _plain_totals, _plain_from_state),
    "realistic": Query(_ask_realistic, _realistic_totals, _realistic_from_state),
}


def disagreements(totals: dict[str, Any], truth: dict[str, Any]) -> list[str]:
    """What is wrong with an answer, in words; empty if it is right. Doubles may differ in the last digits, as their sums do in Spark."""
    wrong = []
    for name, got in totals.items():
        expected = truth[name]
        right = math.isclose(float(got), expected, rel_tol=1e-9) if isinstance(expected, float) else int(got) == expected
        if not right:
            wrong.append(f"{name}: {got} instead of {expected}")
    return wrong
