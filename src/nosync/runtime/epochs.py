"""The epoch path: open, compute, record. Single-threaded; the run's loop calls `step` again and again.

An epoch is opened by recording the slice of every source, computed by one Spark job, and whole once its entry is in the journal.
A failure at any point leaves the state at the epoch before; the opened epoch is repeated as recorded.
"""

import os
import socket
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nosync.catalyst.graph import RegroupNode, SourceNode
from nosync.journal.entries import Computed, Merged, Opened, Started
from nosync.journal.journal import Journal
from nosync.journal.names import source_folder
from nosync.runtime.merging import Merger
from nosync.runtime.program import Program, check_same
from nosync.runtime.progress import progress
from nosync.spark.empty import empty_result
from nosync.spark.failure import disk_failed, explain
from nosync.spark.job import EpochJob, Setting
from nosync.spark.receipts import Receipt, agreed
from nosync.spark.session import EPOCH_POOL, check_home, flow_session

WIDE_BYTES = 1 << 20
Clock = Callable[[], float]
Changes = dict[str, Callable[[], DataFrame]]


class Epochs:
    """A flow on its home. Owns the journal: a second one on the same home gets `Conflict`."""

    def __init__(self, program: Program, home: Path, shards: int | None, clock: Clock = time.time, wide_bytes: int = WIDE_BYTES) -> None:
        self.program, self.home, self.clock, self.wide_bytes = program, home.absolute(), clock, wide_bytes
        self.run = uuid.uuid4().hex[:12]
        self.journal = Journal(self.home)
        try:
            check_home(program.spark, self.home)
            self.image = self.journal.image
            self.shards = self._declare(shards)
            self.session = flow_session(program.spark, self.shards)
            self.setting = self._setting()
            for name, source in program.sources.items():
                source.start(self.home / source_folder(name), self.image.slices(name))
            self.merger = Merger(str(self.home), program.name, self.run)
        except BaseException:
            self.journal.close()
            raise

    def _declare(self, shards: int | None) -> int:
        known = self.image.declared
        chosen = shards or (known.shards if known else self.program.spark.sparkContext.defaultParallelism)
        declaration = self.program.declaration(chosen)
        if known is not None:
            check_same(known, declaration)
        if known != declaration:
            self.journal.append(declaration)
        self.journal.append(Started(self.run, os.getpid(), socket.gethostname(), self.clock()))
        return chosen

    def _setting(self) -> Setting:
        graph = self.program.graph
        empties = {
            operator.name: empty_result(self.session, operator)
            for operator in graph.operators
            if isinstance(operator, RegroupNode) and operator.empty is not None
        }
        return Setting(self.session, graph, str(self.home), self.program.name, self.run, self.shards, empties)

    def step(self) -> dict[str, Any] | None:
        """One epoch if there is input (or one left unfinished), and its progress; None when there is nothing to do."""
        self._merge()
        started = time.perf_counter()
        opened = self.image.unfinished() or self._open()
        if opened is None:
            return None
        opened_at = time.perf_counter()
        try:
            receipts, rows, rejected = self._compute(opened)
        except Exception as error:
            raise explain(error, self.program.functions, list(self.program.graph.views), opened.epoch) from None
        computed_at = time.perf_counter()
        self._seal(opened.epoch, receipts, rows, rejected)
        self._merge()
        ended = time.perf_counter()
        millis = {
            "triggerExecution": round((ended - started) * 1e3),
            "open": round((opened_at - started) * 1e3),
            "compute": round((computed_at - opened_at) * 1e3),
            "seal": round((ended - computed_at) * 1e3),
        }
        return progress(opened, receipts, rows, rejected, millis, self.image, self.run)

    def _seal(self, epoch: int, receipts: list[Receipt], rows: dict[str, int], rejected: dict[str, int]) -> None:
        layers = tuple(receipt.layer for receipt in receipts if receipt.layer)
        try:
            self.journal.append(Computed(epoch, layers, rows, rejected))
        except OSError as error:
            raise disk_failed(str(error), epoch) from error

    def _open(self) -> Opened | None:
        slices = {name: slice for name, source in self.program.sources.items() if (slice := source.available()) is not None}
        first = self.image.epoch == 0 and self.program.graph.statics
        if not slices and not first:
            return None
        opened = Opened(self.image.epoch + 1, self.clock(), slices)
        try:
            self.journal.append(opened)
        except OSError as error:
            raise disk_failed(str(error), opened.epoch) from error
        return opened

    def _compute(self, opened: Opened) -> tuple[list[Receipt], dict[str, int], dict[str, int]]:
        sources = self.program.sources
        changes: Changes = {name: partial(sources[name].read, self.session, slice) for name, slice in opened.slices.items()}
        changes |= self._statics() if opened.epoch == 1 else {}
        wide = frozenset(name for name, slice in opened.slices.items() if sources[name].weight(slice) >= self.wide_bytes)
        direct = {name: paths for name, slice in opened.slices.items() if (paths := self._direct(name, slice))}
        job = self._job(opened.epoch, changes, wide, direct)
        receipts = job.run(late=False)
        for name, slice in opened.slices.items():
            if name not in job.observed and sources[name].rows(slice) is None:
                job.count(name)
        rows = {name: self._rows(name, slice, job) for name, slice in opened.slices.items()}
        rejected = self._rejected(opened, job)
        job = self._job(opened.epoch, changes | self._rejected_rows(opened, rejected), wide, direct)
        return agreed(receipts + job.run(late=True)), rows, rejected

    def _direct(self, name: str, slice: dict[str, Any]) -> tuple[str, ...]:
        """Files of the slice that tasks may read themselves."""
        offer = getattr(self.program.sources[name], "direct", None)
        return tuple(offer(slice)) if offer else ()

    def _job(self, epoch: int, changes: Changes, wide: frozenset[str], direct: dict[str, tuple[str, ...]] | None = None) -> EpochJob:
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", EPOCH_POOL)
        return EpochJob(self.setting, epoch, lambda operator: self.image.covers(operator, epoch - 1), changes, wide, direct or {})

    def _statics(self) -> Changes:
        return {node.name: partial(self._static, node) for node in self.program.graph.statics}

    def _static(self, node: SourceNode) -> DataFrame:
        return self.setting.catalyst.frame(node.static).select("*", F.lit(1).cast("bigint").alias("_diff"))

    def _rows(self, name: str, slice: dict[str, Any], job: EpochJob) -> int:
        known = self.program.sources[name].rows(slice)
        if known is not None:
            return known
        return job.observed.get(name, {}).get("rows", 0)

    def _rejected(self, opened: Opened, job: EpochJob) -> dict[str, int]:
        counted = {name: job.observed.get(name, {}).get("rejected", 0) for name in opened.slices}
        counts = {name: counted[name] + len(slice.get("broken", {})) for name, slice in opened.slices.items()}
        return {name: count for name, count in counts.items() if count}

    def _rejected_rows(self, opened: Opened, names: dict[str, int]) -> Changes:
        found: Changes = {}
        for name in names:
            read = getattr(self.program.sources[name], "rejected", None)
            if read is not None:
                found[f"{name}.rejected"] = partial(read, self.session, opened.slices[name], opened.epoch)
        return found

    def _merge(self) -> None:
        for layer in self.merger.collect():
            self.journal.append(Merged(layer))
        self.merger.offer(self.image)

    def close(self) -> None:
        self.merger.close()
        self.journal.close()
