"""What the first epoch of a run would otherwise wait for, done ahead by who stands by: Spark's code is loaded and compiled, workers are
forked, plans were put together once.

Promise: nothing counts that is computed here. The newest epoch is computed once more, as if there were nothing before it, into a hidden
folder of the home that is deleted afterwards; a rehearsal that fails is left to the run.
"""

import logging
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.model.errors import NosyncError
from nosync.model.identifiers import Epoch
from nosync.runtime.program import Program
from nosync.spark.engine import SparkEngine

ROWS = 1000
TIMES = 2
LATER = Epoch(2)  # than the first one, in which static tables are read
MOST_BYTES = 64 << 20


def rehearse(program: Program, image: Image, home: Path, log: logging.Logger) -> None:
    """The one way and the other, as often as it takes Spark to have plans and workers for it."""
    shards = image.declared.shards if image.declared else program.spark.sparkContext.defaultParallelism
    folder = home / f".rehearsal-{uuid.uuid4().hex}"
    try:
        _job(program.spark, shards)
        engine = SparkEngine(program, str(folder), "0.rehearsal", shards)
        for engine.ways.pinned in ("narrow", "wide") * TIMES:
            engine.compute([_newest(program, image)], lambda _: {})
    except NosyncError as error:
        log.info("rehearsal: %s", error.message)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _newest(program: Program, image: Image) -> Opened:
    """The newest epoch with input; without any where there is none, or much."""
    for epoch in sorted(image.opened, reverse=True):
        slices = {name: slice for name, slice in image.opened[epoch].slices.items() if name in program.sources}
        if slices and sum(program.sources[name].weight(slice) for name, slice in slices.items()) <= MOST_BYTES:
            return Opened(LATER, image.opened[epoch].at, slices, {})
    return Opened(LATER, 0.0, {}, {})


def _job(spark: SparkSession, shards: int) -> None:
    """Workers import what tasks need, and stay."""
    spark.range(ROWS).repartition(shards, "id").mapInArrow(_unchanged, "id bigint").groupBy().count().collect()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import nosync.spark.engine
    import nosync.spark.worker

    nosync.spark.worker.warm_up()
    yield from batches
