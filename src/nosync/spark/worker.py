"""Spark's Python workers live for many tasks; after their first one they are set up for the next.

Called by tasks once their modules are loaded. Costs a few dozen megabytes per worker that would otherwise be given back in between.
"""

import ctypes
import gc
from functools import cache

from pyspark import TaskContext

from nosync.spark.quiet_daemon import quiet_daemon

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the numbers of glibc's mallopt
LARGEST_FROM_HEAP = 32 << 20  # the most that glibc allows
KEPT_FREE = 64 << 20


def warm_up() -> None:
    """Makes later tasks of this worker cheaper, and its end quiet; does nothing outside of Spark's workers."""
    if TaskContext.get() is not None:
        _warm_up_once()


@cache
def _warm_up_once() -> None:
    keep_freed_memory()
    gc.collect()
    quiet_daemon()
    gc.freeze()  # workers collect garbage after every task: 10 ms each, if they had to look through all loaded modules


def keep_freed_memory() -> bool:
    """Arrays of a task reuse the pages of the task before instead of asking the kernel for zeroed ones; False where that cannot be set."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_FROM_HEAP)) and bool(mallopt(TRIM_THRESHOLD, KEPT_FREE))
