"""What the first epoch of a run would otherwise wait for, done ahead by who stands by: Spark's code is loaded and compiled, workers are
forked, plans were put together once.

Promise: nothing counts that is computed here. The newest epoch is computed once more, as if there were nothing before it, into a hidden
folder of the home that is deleted afterwards; one that fails is left to the run.
"""

import logging
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.model.identifiers import Epoch
from nosync.runtime.program import Program
from nosync.runtime.unshared_home import is_unshared
from nosync.spark.engine import SparkEngine, job_group
from nosync.store.homes import WARM_UP

ROWS = 1000
TIMES = 2
LATER = Epoch(2)  # than the first one, in which static tables are read
MOST_BYTES = 64 << 20
END_SECONDS = 2.0


class WarmUp:
    """In a thread of its own: on a cluster without a free core it waits for one, which nobody who stands by may."""

    def __init__(self, program: Program, image: Image, home: Path, log: logging.Logger) -> None:
        self.program, self.image, self.home, self.log = program, image, home, log
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="nosync warm-up", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """The one way and the other, as often as it takes Spark to have plans and workers for it."""
        program, folder = self.program, self.home / f"{WARM_UP}{uuid.uuid4().hex}"
        shards = self.image.declared.shards if self.image.declared else program.spark.sparkContext.defaultParallelism
        try:
            program.spark.sparkContext.setJobGroup(job_group(program.name), f"{program.name}, warm-up")
            _job(program.spark, shards)
            if is_unshared(program.spark, self.home):
                return  # there is no folder that all tasks could write to
            engine = SparkEngine(program, str(folder), "0.warm-up", shards)
            for engine.ways.pinned in ("narrow", "wide") * TIMES:
                if not self._ending:
                    engine.compute([_newest(program, self.image)], lambda _: {})
            self.log.info("rehearsed")
        except Exception as error:  # whatever it is, the run comes upon it too, or not
            self.log.info("warm-up: %s", str(error).partition("\n")[0])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> None:
        """What has not been rehearsed by now is not. What others have left is deleted: the run is about to begin."""
        self._ending = True
        if self._thread.is_alive():
            self.program.spark.sparkContext.cancelJobGroup(job_group(self.program.name))
            self._thread.join(END_SECONDS)
        for folder in self.home.glob(f"{WARM_UP}*"):
            shutil.rmtree(folder, ignore_errors=True)


def _newest(program: Program, image: Image) -> Opened:
    """The newest epoch with input; without any where there is none, or much."""
    for epoch in sorted(image.opened, reverse=True):
        opened = image.opened[epoch]
        slices = {name: slice for name, slice in opened.slices.items() if name in program.sources and not opened.origin}
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
