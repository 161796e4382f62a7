"""Measures what a run takes, once in ten seconds: reading it takes some milliseconds, which no epoch shall wait for."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from nosync.bridge.heap import Heap, heap_of
from nosync.history.status import next_loss
from nosync.journal.journal import Journal
from nosync.journal.names import INPUT
from nosync.model.footprint import Footprint
from nosync.model.store import Disk

SECONDS = 10.0
PROC = Path("/proc")
NO_HEAP = Heap(0, 0, 0)


class Footprints:
    """Of one run. `last` is None until it was measured for the first time."""

    def __init__(self, spark: SparkSession, journal: Journal, disk: Disk, clock: Callable[[], float] = time.monotonic) -> None:
        self._spark, self._journal, self._disk, self._clock = spark, journal, disk, clock
        self._measured = -SECONDS
        self.last: Footprint | None = None

    def measure(self, now: float) -> None:
        """If it is time to. `now` is that of the epochs."""
        if self._clock() - self._measured < SECONDS:
            return
        self._measured = self._clock()
        processes = processes_below(os.getpid())
        heap, sizes = heap_of(self._spark) or NO_HEAP, self._disk.sizes("")
        self.last = Footprint(
            sum(map(process_bytes, processes)), len(processes), heap.used, heap.live, heap.most, len(sizes),
            sum(size for name, size in sizes.items() if name.startswith(f"{INPUT}/")), self._gives_up(now),
        )  # fmt: skip

    def _gives_up(self, now: float) -> tuple[str, int] | None:
        with self._journal.lock:  # only to copy: looking ahead takes longer
            image = self._journal.image
            keep, epoch, times, pins = image.keep, image.epoch, dict(image.times), dict(image.pins)
        return next_loss(keep, epoch, times, pins, now)


def processes_below(root: int) -> list[int]:
    """The process and all that it has started, and those again; itself alone where the system does not say."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir(PROC):
            if name.isdecimal() and (parent := _parent(name)) is not None:
                children.setdefault(parent, []).append(int(name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _parent(process: str) -> int | None:
    with suppress(OSError):  # it has ended
        return int((PROC / process / "stat").read_text().rpartition(")")[2].split()[1])
    return None


def process_bytes(process: int) -> int:
    """Its share of memory (PSS)."""
    with suppress(OSError):
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
