"""`python -m bench.nexmark --events 200000`: throughput of each Nexmark query, beside Spark Structured Streaming where it accepts it.

Prints for each query the rows of the view, events a second of either engine (median epoch, the first left out), how
many times as many ours are, and whether the view at the end equals Spark's batch answer. Ends with 1 if one does not.
"""

import argparse
import logging
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from bench.nexmark.events import Events
from bench.nexmark.files import TABLES, TAKEN, schema, side, sources, write
from bench.nexmark.queries import QUERIES
from bench.session import PROVIDER, STORE, open_session
from nosync.testing import Batch, difference

LINE = "{:>5} {:>9} {:>12} {:>12} {:>7}  {}"


@dataclass(frozen=True, slots=True)
class World:
    """What all queries share."""

    spark: SparkSession
    files: Path
    scratch: Path

    def used(self, text: str) -> list[str]:
        return [name for name in TABLES if re.search(rf"\b(from|join) {name}\b", text)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.nexmark", description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--only", action="append", metavar="QUERY", help="q0 to q22; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heap", default="3g")
    return parser.parse_args()


def rate(progress: Iterable[Any]) -> float:
    """Events a second of the median epoch; the first one, which starts everything, is left out."""
    epochs = [p["numInputRows"] / max(p["durationMs"]["triggerExecution"], 1) * 1e3 for p in progress if p["numInputRows"]]
    return statistics.median(epochs[1:] or epochs)


def run_nosync(world: World, name: str, text: str) -> tuple[float, Path]:
    """The query as a flow; q10 with a sink that writes its files. Returns the rate, and the home."""
    home = world.scratch / f"nosync-{name}"
    flow = ns.Flow("nexmark", world.spark)
    sources(flow, world.files, world.used(text))
    view = flow.sql(f"create view {name} as {text}")
    if name == "q10":
        flow.sink("files", view, ns.parquet(str(world.scratch / "q10-nosync")), release="computed")
    run = flow.start(home=home, shards=2, trigger={"availableNow": True})
    run.awaitTermination()
    run.stop()
    return rate(run.recentProgress), home


def run_streaming(world: World, name: str, text: str) -> str:
    """The query as Spark Structured Streaming runs it, in the first output mode that it accepts; or the reason why in none."""
    for table in TABLES:
        _stream(world, table).createOrReplaceTempView(table)
    reason = ""
    for mode in ("append", "update", "complete"):
        state = world.scratch / f"spark-{name}-{mode}"
        try:
            asked = world.spark.sql(text)
            writer = asked.writeStream.outputMode(mode).option("checkpointLocation", str(state)).trigger(availableNow=True)
            running = _to(writer, name, world).start()
            running.awaitTermination()
        except PySparkException as error:
            reason = reason if mode == "complete" and reason else _reason(error)
            continue
        finally:
            shutil.rmtree(state, ignore_errors=True)
        return f"{rate(running.recentProgress):,.0f}"
    return f"refused: {reason}"


def _to(writer: Any, name: str, world: World) -> Any:
    if name != "q10":
        return writer.format("noop")
    return writer.format("parquet").partitionBy("dt", "hm").option("path", str(world.scratch / "q10-spark"))


def _stream(world: World, table: str) -> DataFrame:
    stream = world.spark.readStream.schema(schema(world.files, table)).option("maxFilesPerTrigger", 1).parquet(str(world.files / table))
    return stream.withColumn(TAKEN, F.current_timestamp()) if table == "bid" else stream


def _reason(error: PySparkException) -> str:
    """The first sentence of what Spark says, without its number for it."""
    words = re.sub(r"^\[\w+\] ", "", str(error).strip().splitlines()[0])
    return re.split(r"[.;] ", words)[0][:110]


def unequal(world: World, name: str, text: str, home: Path) -> tuple[int, str]:
    """Rows of the view, and how it differs from batch. Bids are stamped by epoch, so batch takes the stamps that the flow recorded."""
    tables = {table: world.spark.read.schema(schema(world.files, table)).parquet(str(world.files / table)) for table in TABLES}
    view = ns.open(home).view(name)
    if name == "q12":
        return view.num_rows, "" if sum(view["bids"].to_pylist()) == tables["bid"].count() else "bids are missing"
    tables["bid"] = tables["bid"].withColumn(TAKEN, F.lit(None).cast("timestamp"))
    return view.num_rows, difference(Batch(world.spark, tables).sql(text).toArrow(), view)


def measure(world: World, name: str) -> bool:
    text = QUERIES[name].strip()
    try:
        found, home = run_nosync(world, name, text)
    except ns.NosyncError as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        print(LINE.format(name, "", "", run_streaming(world, name, text), "", said), flush=True)
        return False
    streaming = run_streaming(world, name, text)
    rows, wrong = unequal(world, name, text, home)
    shutil.rmtree(home)
    verdict = wrong or "equal to batch"
    number, ratio, said = streaming, "", verdict
    if streaming.startswith("refused"):
        number, said = "", f"{verdict}; Spark {streaming}"
    else:
        ratio = f"{found / float(streaming.replace(',', '')):.2f}x"
    print(LINE.format(name, rows, f"{found:,.0f}", number, ratio, said), flush=True)
    return not wrong


def main() -> int:
    asked = arguments()
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # a refusal is an answer here, and stands in the table
    with tempfile.TemporaryDirectory() as scratch:
        spark = open_session("nosync", asked.heap, Path(scratch) / "spark")
        spark.conf.set(STORE + "providerClass", PROVIDER + "RocksDBStateStoreProvider")
        spark.conf.set(STORE + "rocksdb.changelogCheckpointing.enabled", "true")
        world = World(spark, Path(scratch) / "files", Path(scratch))
        ends = np.linspace(0, asked.events, asked.epochs + 1, dtype=int)[1:].tolist()
        write(Events(asked.events, asked.seed, micros=10_000).cut(ends), world.files)
        side(spark)
        print(f"{asked.events:,} events in {asked.epochs} epochs", flush=True)
        print(LINE.format("query", "rows", "nosync ev/s", "Spark ev/s", "ratio", ""), flush=True)
        right = [measure(world, name) for name in asked.only or QUERIES]
        print(f"{sum(right)} of {len(right)} queries equal to batch", flush=True)
        spark.stop()
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
