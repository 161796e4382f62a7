"""PySpark's daemon for sessions that we make: what tasks import is there already when it forks a worker, which saves each of them most of a
second; and a worker whose JVM has gone ends without a word (see `quiet_daemon`).

Named in the session's settings (`spark.python.daemon.module`); Spark calls it as it calls its own.
"""

import pandas
import pyarrow
import pyspark.daemon
import pyspark.worker

import nosync.spark.engine
from nosync.spark.quiet_daemon import quiet_daemon

LOADED = (pandas, pyarrow, pyspark.worker, nosync.spark.engine)

if __name__ == "__main__":
    quiet_daemon()
    pyspark.daemon.manager()
