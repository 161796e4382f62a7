"""PySpark's daemon for sessions that we make: what tasks import is there already when it forks a worker, which saves each of them most of a
second; and a worker whose JVM has gone ends without a word.

Named in the session's settings (`spark.python.daemon.module`); Spark calls it as it calls its own.
"""

from socket import socket

import pandas
import pyarrow
import pyspark.daemon
import pyspark.worker

import nosync.spark.engine

LOADED = (pandas, pyarrow, pyspark.worker, nosync.spark.engine)
sparks_own = pyspark.daemon.worker


def worker(sock: socket, authenticated: bool) -> int:
    """Until the JVM closes the pipe."""
    try:
        return sparks_own(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
