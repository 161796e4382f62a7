"""PySpark's daemon for sessions that we make: what tasks import is there already when it forks a worker, which saves each of them most of a
second; and a worker whose JVM has gone ends without a word (see `closed_pipes`).

Named in the session's settings (`spark.python.daemon.module`); Spark calls it as it calls its own.
"""

import pandas
import pyarrow
import pyspark.daemon
import pyspark.worker

import nosync.spark.engine
from nosync.spark.closed_pipes import ignore_closed_pipes

LOADED = (pandas, pyarrow, pyspark.worker, nosync.spark.engine)

if __name__ == "__main__":
    ignore_closed_pipes()
    pyspark.daemon.manager()
