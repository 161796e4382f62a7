"""A flow whose second place is a bucket."""

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from tests.crash.orders import feed, judge, orders_flow
from tests.store.servers import BUCKET


def test_a_lost_home_comes_back_from_a_bucket(
    quick: SparkSession, tmp_path: Path, s3: Callable[[str], object], s3_endpoint: str
) -> None:
    s3(s3_endpoint)
    home, folder, remote = tmp_path / "home", tmp_path / "in", f"s3://{BUCKET}/{uuid4().hex}"
    feed(folder, range(3))
    with orders_flow(quick, folder)[0].start(home, shards=2, remote=remote) as run:
        run.processAllAvailable()
    assert run.safe == {"process": 3, "host": 3, "site": 3}
    shutil.rmtree(home)
    feed(folder, [3])
    with orders_flow(quick, folder)[0].start(home, remote=remote) as run:
        assert run.recovered.epoch == 3 and run.recovered.recomputed == 0 and run.recovered.fetched > 0
        run.processAllAvailable()
    judge(quick, home, folder, [2, 4])
