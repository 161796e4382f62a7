"""A program that is killed while it takes over: the home belongs to the program before, until the whole has been rebuilt."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns

CODE = """
import sys
from pathlib import Path
from nosync.spark.session import active_or_local
from tests.crash.test_changed import declared
spark, folder = active_or_local(), Path(sys.argv[1])
spark.conf.set("spark.sql.session.timeZone", "UTC")
declared(spark, folder, changed=True, deadly=True).start(folder / "home", on_change="rebuild").awaitTermination()
"""


def declared(spark: SparkSession, folder: Path, changed: bool, deadly: bool = False) -> ns.Flow:
    """With `deadly`, the changed view kills the driver after some of its rows were computed."""

    def doubled(price: int) -> int:
        if deadly and price == 3:
            driver = int((folder / "driver").read_text())
            os.kill(driver, signal.SIGKILL)
        return 2 * price

    flow = ns.Flow("shop", spark)
    rows = flow.source("s", ns.files(folder / "in", format="csv", schema="k string, price int", maxFilesPerTrigger=1))
    flow.view("totals", rows.groupBy("k").agg(F.sum("price").alias("price")))
    if changed:
        flow.view("doubles", rows.groupBy("k").agg(F.sum(F.udf(doubled, "int")("price")).alias("price")))
    else:
        flow.view("counts", rows.groupBy("k").count())
    return flow


def answers(home: Path, view: str, column: str) -> dict[str, Any]:
    return {row["k"]: row[column] for row in ns.open(home).view(view).to_pylist()}


@pytest.mark.slow
def test_a_driver_that_is_killed_while_it_rebuilds_leaves_everything_as_it_was(quick: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / "in" / f"{number}.csv").write_text(f"a,{number}\nb,{number + 1}\n")
    with declared(quick, tmp_path, changed=False).start(home, shards=2) as run:
        run.processAllAvailable()
    code = f"import os\nopen({str(tmp_path / 'driver')!r}, 'w').write(str(os.getpid()))\n{CODE}"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[2], timeout=900)
    assert done.returncode == -signal.SIGKILL
    assert answers(home, "counts", "count") == {"a": 2, "b": 2}
    with declared(quick, tmp_path, changed=False).start(home) as run:
        assert not run.takeover.epoch and run.recovered.recomputed == 0
    with declared(quick, tmp_path, changed=True).start(home, on_change="rebuild") as run:
        assert run.takeover.rebuilt == ("doubles/aggregate",) and run.takeover.kept[0] == "totals/aggregate"
    assert answers(home, "doubles", "price") == {"a": 6, "b": 10}
    assert answers(home, "totals", "price") == {"a": 3, "b": 5}
