"""How much memory the JVM has for objects, and how much of it they take."""

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Heap:
    """Bytes. `used` counts garbage too; `live` is what was left when the collector last looked, pool by pool; `most` the limit."""

    used: int
    live: int
    most: int


def heap_of(spark: SparkSession) -> Heap | None:
    """Some ten calls, a few milliseconds. None where there is no JVM, or none any more."""
    try:
        return _heap_of(spark)
    except (Py4JError, AttributeError, OSError):
        return None


def _heap_of(spark: SparkSession) -> Heap:
    management = spark._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    heap = management.getMemoryMXBean().getHeapMemoryUsage()
    left = [pool.getCollectionUsage() for pool in management.getMemoryPoolMXBeans() if str(pool.getType()) == "Heap memory"]
    live = sum(int(usage.getUsed()) for usage in left if usage is not None)
    return Heap(int(heap.getUsed()), live, int(heap.getMax()))
