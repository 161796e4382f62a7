"""The flow that is made to suffer: a folder of JSON files, views of every kind, and how to judge what is left of them.

Files are numbered and their rows follow from the number, so that any two runs can be given the same input.
"""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync import testing
from nosync.journal.chain import read_chain
from nosync.journal.past import TieredReader, openings
from nosync.store.disk import LocalDisk
from nosync.testing import Batch

SCHEMA = "id bigint, customer string, amount bigint"
ROWS = 40


def rows_of(number: int) -> list[dict[str, Any]]:
    """What the file of a number holds."""
    chance = random.Random(number)
    return [
        {"id": number * ROWS + i, "customer": f"c{chance.randint(0, 30)}", "amount": chance.randint(1, 100)}
        for i in range(ROWS)
    ]  # fmt: skip


def feed(folder: Path, numbers: Iterable[int]) -> None:
    """Moves files in whole, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        beginning = folder / f".{number}"
        beginning.write_text("".join(json.dumps(row) + "\n" for row in rows_of(number)))
        beginning.rename(folder / f"{number:05d}.json")


def program(face: Any, source: Any = None) -> dict[str, DataFrame]:
    """A stateless view, an aggregate, an aggregate of that, and a join of both levels."""
    orders = face.source("orders", source)
    found = {"large": face.view("large", orders.where("amount > 50").select("id", "amount"))}
    sums = F.sum("amount").alias("total"), F.count("*").alias("n"), F.max("amount").alias("most")
    found["customers"] = face.view("customers", orders.groupBy("customer").agg(*sums))
    found["levels"] = face.view("levels", found["customers"].groupBy("n").agg(F.count("*").alias("m"), F.sum("total").alias("total")))
    joined = orders.join(found["customers"], "customer").where("amount = most").select("id", "customer", "total")
    found["best"] = face.view("best", joined)
    return found


def orders_flow(spark: SparkSession, folder: Path, files: int = 1, **options: Any) -> tuple[ns.Flow, dict[str, DataFrame]]:
    """The flow over a folder, `files` of them an epoch, ready for sinks."""
    flow = ns.Flow("orders", spark)
    source = ns.files(folder, format="json", schema=SCHEMA, maxFilesPerTrigger=files, **options)
    return flow, program(flow, source)


def taken(home: Path) -> dict[int, list[str]]:
    """By epoch, the files that it has taken, as the journal says."""
    disk = LocalDisk(home)
    chain = read_chain(disk)
    known = openings(TieredReader(disk, None), chain.base, chain.records)
    return {entry.epoch: [file[0] for file in entry.slices["orders"]["files"]] for entry in known}


def judge(
    spark: SparkSession, home: Path, folder: Path, epochs: Iterable[int] | None = None, taken_by: dict[int, list[str]] | None = None
) -> None:
    """Compares every view with Spark's answer over the same files, at the newest epoch or at those given. `taken_by`: the files of each
    epoch, where the home alone does not know them.
    """
    opened, files = ns.open(home), taken_by or taken(home)

    def batch_at(epoch: int) -> Batch:
        paths = [str(folder / name) for number in range(1, epoch + 1) for name in files[number]]
        batch = Batch(spark, {"orders": spark.read.schema(SCHEMA).json(paths)})
        program(batch)
        return batch

    testing.judge(opened, batch_at, epochs or [opened.epoch])
