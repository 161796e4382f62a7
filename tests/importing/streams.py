"""Queries of Structured Streaming that leave a checkpoint behind, and the same ones that go on."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

SCHEMA = "user string, item string, price double, qty int, cost decimal(12,2), paid boolean, at timestamp"
NAMES = ("user", "item", "price", "qty", "cost", "paid", "at")


def put(folder: Path, number: int, rows: Sequence[Sequence[Any]]) -> None:
    """A file of its own, with a name that is written otherwise in an address."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in rows]
    (folder / f".{number}").write_text("\n".join(lines) + "\n")
    (folder / f".{number}").rename(folder / f"part {number}.json")


def read(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).json(str(folder))


def run(query: DataFrame, checkpoint: Path, mode: str, sink: Callable[[DataFrame, int], None] | None = None) -> None:
    """All that is there now, in batches."""

    def nothing(rows: DataFrame, batch: int) -> None:
        rows.write.format("noop").mode("append").save()

    writer = query.writeStream.outputMode(mode).foreachBatch(sink or nothing)
    started = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    started.awaitTermination()
