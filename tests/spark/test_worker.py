"""Workers settle in after their first task."""

import gc

from pyspark.sql import SparkSession

from nosync.spark.worker import settle_in


def frozen_after_settling_in(_: object) -> int:
    settle_in()
    return gc.get_freeze_count()


def test_workers_spare_loaded_modules_from_collection(spark: SparkSession) -> None:
    assert all(spark.sparkContext.parallelize(range(2), 2).map(frozen_after_settling_in).collect())


def test_the_driver_stays_as_it_is() -> None:
    before = gc.get_freeze_count()
    settle_in()
    assert gc.get_freeze_count() == before
