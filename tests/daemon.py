"""PySpark's daemon, with what tasks import already there when it forks a worker: saves each of them most of a second.

Named in the session's settings (`spark.python.daemon.module`); Spark calls it as it calls its own.
"""

import pandas
import pyarrow
import pyspark.worker
from pyspark.daemon import manager

import nosync.spark.engine

LOADED = (pandas, pyarrow, pyspark.worker, nosync.spark.engine)

if __name__ == "__main__":
    manager()
