"""One query for each kind of operator, over `bench.bids` and `bench.texts`, with the totals that show whether its answer is right."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.bids import TOP
from bench.queries import Query
from bench.texts import DELAY_SECONDS, NEEDLE, WINDOW_SECONDS


def _aggregate(events: DataFrame) -> DataFrame:
    return events.groupBy("id").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def _aggregate_totals(result: DataFrame) -> DataFrame:
    return result.agg(F.count("*").alias("ids"), F.sum("n").alias("rows"), F.sum("total").alias("value"))


def _join(events: DataFrame) -> DataFrame:
    items = events.where("kind = 0").select("id", F.col("value").alias("asked"))
    return items.join(events.where("kind = 1").select("id", F.col("value").alias("bid")), "id")


def _join_totals(result: DataFrame) -> DataFrame:
    return result.agg(F.count("*").alias("pairs"), F.sum("bid").alias("bid"))


def _distinct(events: DataFrame) -> DataFrame:
    return events.select("id").distinct()


def _top(events: DataFrame) -> DataFrame:
    return events.orderBy(F.desc("value"), "id", "kind").limit(TOP)


def _duplicates(events: DataFrame) -> DataFrame:
    return events.dropDuplicates(["id"])


def _ids(result: DataFrame) -> DataFrame:
    return result.agg(F.count("*").alias("ids"))


def _word_count(lines: DataFrame) -> DataFrame:
    words = lines.select("at", F.explode(F.split("line", " ")).alias("word"))
    return words.groupBy(F.window("at", f"{WINDOW_SECONDS} seconds", "1 second"), "word").agg(F.count("*").alias("n"))


def _grep(lines: DataFrame) -> DataFrame:
    return lines.where(F.col("line").contains(NEEDLE))


OPERATORS = {
    "aggregate": Query(_aggregate, _aggregate_totals),
    "join": Query(_join, _join_totals),
    "distinct": Query(_distinct, _ids),
    "top": Query(_top, lambda result: result.agg(F.sum("value").alias("top"))),
    "duplicates": Query(_duplicates, _ids, mode="append"),
    "words": Query(
        _word_count, lambda result: result.agg(F.sum("n").alias("counted")), mode="append", watermark=("at", f"{DELAY_SECONDS} second")
    ),
    "grep": Query(_grep, lambda result: result.agg(F.count("*").alias("matches")), mode="append"),
}
