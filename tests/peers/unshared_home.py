"""A program whose executors keep layers in folders of their own, one of which dies with layers that nobody else has. Run as
`-m tests.peers.unshared_home PLACE`; prints what was there, as JSON, in its last line.

Two executors of a real cluster on this machine: the folder for layers is relative, so that each has its own.
"""

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.model.places import address_of
from nosync.peers.arrivals import Arrivals
from nosync.testing import Batch, difference
from tests.crash.driver import SETTINGS
from tests.crash.processes import WORDS, command_of
from tests.crash.waiting import until

EPOCHS, ROWS, USERS = 7, 40, 9
KILLED_AFTER = 3
MORE = {
    "spark.nosync.local.dir": "layers",
    "spark.nosync.way": "wide",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.task.maxFailures": "2",  # a layer that is lost is so at the fourth attempt, too
}


def declare(flow: Any, rows: DataFrame) -> None:
    spent = flow.view("spent", rows.groupBy("user").agg(F.sum("n").alias("spent"), F.count("*").alias("times")))
    flow.view("often", spent.where("times > 3").join(rows.where("n % 5 = 0"), "user"))


def given(epoch: int) -> list[tuple[str, int]]:
    return [(f"user {(number * 7) % USERS}", number) for number in range(epoch * ROWS, (epoch + 1) * ROWS)]


def differences(spark: SparkSession, run: ns.Run, epochs: int) -> list[str]:
    """Between the views and what batch says."""
    rows = spark.createDataFrame([row for epoch in range(epochs) for row in given(epoch)], "user string, n long")
    batch = Batch(spark, {"rows": rows})
    declare(batch, batch.source("rows"))
    return [found for name in batch.views if (found := difference(batch.answer(name), run.view(name).toArrow()))]


def kill_an_executor() -> None:
    """With its workers and its layer server."""
    executor = next(one for one in psutil.Process().children(recursive=True) if WORDS["executor"] in command_of(one))
    for process in [executor, *executor.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def main(place: Path) -> None:
    held = threading.Event()
    step = Arrivals.step
    Arrivals.step = lambda self: not held.is_set() and step(self)  # type: ignore[method-assign]
    spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=SETTINGS | MORE).getOrCreate()
    flow, source = ns.Flow("shop", spark), ns.memory("user string, n long")
    declare(flow, flow.source("rows", source))
    with flow.start(place / "home", shards=2) as run:
        for epoch in range(EPOCHS):
            if epoch == KILLED_AFTER - 1:
                until(lambda: run.safe["executor"] == run.epoch)
                held.set()  # from here on nothing comes home
            if epoch == KILLED_AFTER:
                kill_an_executor()
            if epoch == KILLED_AFTER + 1:
                held.clear()
            source.add(given(epoch))
            run.processAllAvailable()
        differing = differences(spark, run, EPOCHS)
        until(lambda: run.safe["host"] == run.epoch == EPOCHS)
        stepping = run._loop.stepping
        assert stepping is not None and stepping.mending is not None and stepping.arrivals is not None
        lost = [[done.missing_from, done.recomputed] for done in stepping.mending.mended]
        places = sorted(address_of(one)[0] for one in stepping.arrivals.places)
        at_home = all((place / "home" / layer.path).exists() for layer in stepping.image.newest_layers())
    print(json.dumps({"differing": differing, "lost": lost, "places": places, "at home": at_home, "runs": run.id.partition(".")[0]}))


if __name__ == "__main__":
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    main(Path(sys.argv[1]))
