"""How much memory the JVM has for objects, and how much of it they take."""

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from nosync.bridge.trees import helper


@dataclass(frozen=True, slots=True)
class Heap:
    """Bytes. `used` counts garbage too; `live` is what was left when the collector last looked, pool by pool; `most` the limit."""

    used: int
    live: int
    most: int


def heap_of(spark: SparkSession) -> Heap | None:
    """One call. None where there is no JVM, or none any more."""
    try:
        return Heap(*map(int, str(helper(spark, "Facts").heap()).split()))
    except (Py4JError, AttributeError, OSError):
        return None
