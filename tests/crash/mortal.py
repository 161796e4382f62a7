"""A task that keeps a view's rows and is killed in its first attempt: whatever it was given by then, kernels have done for good."""

import os
import signal
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from nosync.spark.retain import RetainTask
from nosync.spark.task import Batches


@dataclass(frozen=True)
class MortalTask(RetainTask):
    """Behind the first epoch."""

    def process(self, rows: pa.RecordBatch, started: float) -> Batches:
        context = TaskContext.get()
        if self.work.lower > 1 and context is not None and context.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().process(rows, started)
