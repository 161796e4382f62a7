"""The flow's own session: what its settings mean for reading."""

from pathlib import Path

from pyspark.sql import SparkSession

from nosync.spark.session import flow_session


def test_one_file_of_a_few_megabytes_is_read_by_all_cores(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n" * (3 << 18))
    rows = flow_session(spark, shards=2).read.schema("a int, b int").csv(str(tmp_path))
    assert rows.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
