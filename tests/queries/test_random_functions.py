"""Functions that draw random numbers without saying so: found out before rows of theirs are left behind for good."""

import random
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns


def lucky(x: int) -> float:
    return x + random.random()


def lucky_series(x: pd.Series) -> pd.Series:
    return x + random.random()


def doubled(x: int) -> int:
    return 2 * x


@pytest.mark.parametrize("name", ["lucky", "lucky_series"])
def test_a_random_function_stops_the_flow_by_name(quick: SparkSession, tmp_path: Path, name: str) -> None:
    flow = ns.Flow("chance", quick)
    rows = ns.memory("k int")
    source: DataFrame = flow.source("rows", rows)
    function = F.udf(lucky, "double", useArrow=False) if name == "lucky" else F.pandas_udf(lucky_series, "double")  # type: ignore[call-overload]
    flow.view("drawn", source.select("k", function(F.udf(doubled, "int", useArrow=False)("k")).alias("x")).where(F.col("k") > 0))
    rows.add([(1,), (2,)])
    failing = pytest.raises(ns.Failed, match=rf'epoch 1 failed in view "drawn": function "{name}" is not deterministic')
    with failing, flow.start(tmp_path / "home", shards=1) as run:
        run.processAllAvailable()
