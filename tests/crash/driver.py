"""A program of its own: the flow of `orders` with all kinds of sinks, to be killed. Run as `-m tests.crash.driver MASTER PLACE`.

PLACE/in                    files that somebody feeds
PLACE/home                  the flow's home
PLACE/safe, PLACE/computed  folders of Parquet files
PLACE/calls                 a line for each epoch that the function got: its number, and a digest of its rows
PLACE/finish                once this is there, all input is processed and the program ends
PLACE/mortal                if this is there, whoever keeps the rows of a view is killed in its first attempt (see `mortal`)
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import nosync as ns
from nosync.model.store import fingerprint
from nosync.spark import job
from tests.crash.mortal import MortalTask
from tests.crash.orders import orders_flow
from tests.crash.waiting import until

SETTINGS = {
    "spark.driver.memory": "768m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


def suffering_flow(spark: SparkSession, place: Path, out: Path, files: int = 1) -> tuple[ns.Flow, dict[str, DataFrame]]:
    """The flow over PLACE/in with its sinks below `out`."""
    flow, views = orders_flow(spark, place / "in", files=files)
    flow.sink("to_safe", views["customers"], ns.parquet(out / "safe"))
    flow.sink("to_computed", views["levels"], ns.parquet(out / "computed"), release="computed")
    flow.sink("to_function", views["best"], ns.foreachEpoch(noting(out / "calls")))
    return flow, views


def noting(file: Path) -> Callable[[Any, int], None]:
    """A function for `foreachEpoch` that notes each call, one whole line at a time."""

    def note(changes: Any, epoch: int) -> None:
        rows = sorted(map(repr, changes.collect()))
        with file.open("ab", buffering=0) as lines:
            lines.write(f"{epoch} {fingerprint(repr(rows).encode())}\n".encode())

    return note


def session_of(master: str) -> SparkSession:
    """The session of a process that is started only to be killed."""
    builder: Any = SparkSession.builder.master(master).config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


def main(master: str, place: Path) -> None:
    if (place / "mortal").exists():
        job.RetainTask = MortalTask  # type: ignore[attr-defined]
    flow, _ = suffering_flow(session_of(master), place, place)
    with flow.start(home=place / "home", shards=2) as run:
        until(lambda: not run.isActive or (place / "finish").exists(), seconds=3600)
        run.processAllAvailable()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
