"""dropDuplicates on some columns: one whole row for each, whichever comes and goes."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.runtime.starting import begin
from nosync.testing import check
from tests.queries.join_cases import SCHEMAS, changes

REST = ("x", "t", "d", "s")


def test_the_row_that_stays_is_one_of_those_there_are(quick: SparkSession, tmp_path: Path) -> None:
    def program(flow: Any) -> None:
        rows = flow.source("a")
        flow.source("b")
        flow.view("kept", rows.dropDuplicates(["k"]).select("k", F.struct(*REST).alias("row")))

    def expected(flow: Any) -> None:
        flow.view("kept", flow.source("a").groupBy("k").agg(F.collect_list(F.struct(*REST)).alias("row")))

    def one_of(rows: Any, row: Any) -> bool:
        return repr(row) in map(repr, rows)

    check(quick, program, SCHEMAS, changes(5), tmp_path, 2, expected=expected, admissible={"row": one_of})


def test_bloom_filters_say_what_they_kept_back(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = ns.Flow("once", quick), ns.memory("k int")
    flow.view("once", flow.source("s", source).distinct())
    stepping = begin(flow.program(), tmp_path, 1).recover()
    source.add([(k,) for k in range(5_000)])
    stepping.step()
    source.add([(k,) for k in range(4_900, 9_900)])
    progress = stepping.step()
    stepping.close()
    assert progress is not None
    figures = progress["stateOperators"][0]["bloomFilter"]
    assert figures["found"] == 100 and 100 <= figures["passed"] < 500 and figures["asked"] > 4_900
    assert ns.open(tmp_path).view("once").num_rows == 9_900
