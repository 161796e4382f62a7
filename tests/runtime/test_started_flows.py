"""A declared flow is not changed by starting it."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.history.home import Home


def declared(session: SparkSession, source: Any, function: str) -> ns.Flow:
    flow = ns.Flow("shop", spark=session)
    orders = flow.source("orders", source)
    flow.view("spend", orders.groupBy("user").agg(getattr(F, function)("price").alias("spent")))
    return flow


def rows() -> Any:
    return ns.memory("user string, price long")


def names(home: Path) -> list[str]:
    """Under which the home keeps state."""
    found = Home(home).image.declared
    return list(found.fingerprints) if found else []


def spend(home: Path) -> dict[str, int]:
    return {row["user"]: row["spent"] for row in Home(home).view("spend").to_pylist()}


def test_one_flow_runs_on_homes_with_different_histories(quick: SparkSession, tmp_path: Path) -> None:
    """The first home knows the state under a later name, since it had another query before; the second is new."""
    older, newer = rows(), rows()
    with declared(quick, older, "count").start(tmp_path / "one", shards=1) as run:
        older.add([("ann", 1)])
        run.processAllAvailable()
    flow = declared(quick, newer, "sum")
    before = flow.program().declaration(1)
    with flow.start(tmp_path / "one", on_change="rebuild") as run:
        newer.add([("ann", 2)])
        run.processAllAvailable()
    assert flow.program().declaration(1) == before
    with flow.start(tmp_path / "two", shards=1) as run:
        newer.add([("bob", 3)])
        run.processAllAvailable()
    assert names(tmp_path / "one") == ["spend/aggregate@2"]
    assert names(tmp_path / "two") == ["spend/aggregate"]
    assert (spend(tmp_path / "one"), spend(tmp_path / "two")) == ({"ann": 3}, {"bob": 3})
    with flow.start(tmp_path / "one"):
        pass
