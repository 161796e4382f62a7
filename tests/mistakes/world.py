"""Where mistakes are made: a flow with a source and a view, a run that goes on and one that was stopped, files and folders."""

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns


def handle(*given: Any) -> None:
    """A function of the user's."""


@contextmanager
def world(spark: SparkSession, folder: Path) -> Iterator[dict[str, Any]]:
    """The names that calls are made of."""
    (folder / "in").mkdir()
    (folder / "in" / "a.csv").write_text("1\n")
    (folder / "empty").mkdir()
    (folder / "file").write_text("")
    flow, memory = ns.Flow("shop", spark), ns.memory("k string, x int, at timestamp")
    rows = flow.source("s", memory)
    names = {
        "ns": ns, "F": F, "pd": pd, "np": np, "datetime": datetime, "spark": spark,
        "flow": flow, "memory": memory, "rows": rows, "echo": echo(spark, folder / "in"), "view": flow.view("v", rows.select("k", "at")),
        "other": ns.Flow("other", spark).source("o", ns.memory("x int")), "handle": handle, "folder": str(folder / "in"),
        "empty": str(folder / "empty"), "a_file": str(folder / "file"), "home": str(folder / "home"), "run_home": str(folder / "run_home"),
    }  # fmt: skip
    running, stopped = declared("running", spark), declared("stopped", spark)
    ended = stopped["flow"].start(folder / "stopped", shards=1)
    ended.processAllAvailable()
    ended.stop()
    with running["flow"].start(folder / "run_home", shards=1) as run:
        running["memory"].add([("a",)])
        run.processAllAvailable()
        yield names | {"run": run, "stopped": ended, "running": running["flow"], "running_rows": running["rows"]}


def echo(spark: SparkSession, folder: Path) -> ns.Flow:
    """A flow that would write where it reads."""
    flow = ns.Flow("echo", spark)
    rows = flow.source("s", ns.files(folder, format="csv", schema="x int"))
    flow.sink("o", rows, ns.csv(folder, mode="append"))
    return flow


def declared(name: str, spark: SparkSession) -> dict[str, Any]:
    flow, memory = ns.Flow(name, spark), ns.memory("k string")
    rows = flow.source("s", memory)
    flow.view("v", rows)
    return {"flow": flow, "memory": memory, "rows": rows}
