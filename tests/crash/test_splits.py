"""How Spark cuts files into tasks leaves no trace in the bits."""

from pathlib import Path

from pyspark.sql import SparkSession

from tests.crash.orders import feed, orders_flow
from tests.metamorphic import checksums, run_all


def test_other_splits_of_the_same_files_give_the_same_bits(quick: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path / "in", range(4))
    for name, most in (("whole", "128m"), ("split", "700b")):
        session = quick.newSession()
        for setting in ("spark.sql.codegen.wholeStage", "spark.sql.session.timeZone"):
            session.conf.set(setting, quick.conf.get(setting))
        session.conf.set("spark.sql.files.maxPartitionBytes", most)
        run_all(orders_flow(session, tmp_path / "in", files=2)[0], tmp_path / name)
    assert checksums(tmp_path / "whole") == checksums(tmp_path / "split") != {}
