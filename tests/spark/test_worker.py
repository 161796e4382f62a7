"""Workers warm up after their first task."""

import gc

from pyspark.sql import SparkSession

from nosync.spark.worker import warm_up


def frozen_after_settling_in(_: object) -> int:
    warm_up()
    return gc.get_freeze_count()


def test_workers_spare_loaded_modules_from_collection(spark: SparkSession) -> None:
    assert all(spark.sparkContext.parallelize(range(2), 2).map(frozen_after_settling_in).collect())


def test_the_driver_stays_as_it_is() -> None:
    before = gc.get_freeze_count()
    warm_up()
    assert gc.get_freeze_count() == before
