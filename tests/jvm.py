"""JVMs that start sooner: with the classes that Spark loads taken from an archive, and without thorough compilation.

A suite of tests starts some twenty JVMs, most of them for seconds. The archive is kept with pytest's cache. Without it tests are slower and
nothing else.
"""

from pathlib import Path

from nosync.spark import class_archive

# Tests end before thorough compilation has paid for itself: without it the JVM takes half the CPU.
SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:MetaspaceSize=256m"


def options(folder: Path) -> str:
    """For every JVM that a test starts, in `SPARK_SUBMIT_OPTS`."""
    return " ".join([SHORT_LIVED, *class_archive.options(folder)])
