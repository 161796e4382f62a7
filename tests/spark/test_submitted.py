"""A program as `spark-submit` starts it: on the master that it names, with the package sent to executors that come and go."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import nosync

PROGRAM = """
import json, sys
import nosync as ns
from nosync.spark.session import active_or_local
from tests.crash.waiting import until

def places(batches):
    import nosync, pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"file": [nosync.__file__]})

flow, rows = ns.Flow("shop"), ns.memory("x long")
spark = flow.spark
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus
flow.view("v", flow.source("s", rows).groupBy("x").count())
with flow.start(sys.argv[1]) as run:
    found, ways = [], []
    for number in range(2):
        until(lambda: not number or executors().size() == 1)  # the driver's own
        rows.add([(number,)] * 3)
        run.processAllAvailable()
        found.append(sorted(tuple(row) for row in run.view("v").collect()))
        ways.append(run.lastProgress["way"])
    file = spark.range(1).mapInArrow(places, "file string").first().file
    print(json.dumps([spark.sparkContext.master, spark.conf.get("spark.speculation"), found, ways, file]))
"""
SETTINGS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "1s",
    "spark.nosync.way": "wide",
}


@pytest.mark.slow
def test_a_submitted_program_runs_on_its_master_with_executors_that_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    package = shutil.make_archive(str(tmp_path / "nosync"), "zip", Path(nosync.__file__).parents[1], "nosync")
    settings = [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local-cluster[1,1,1024]", *settings]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [*command, "--py-files", package, "program.py", "home"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    master, speculation, found, ways, file = json.loads(done.stdout.splitlines()[-1])
    assert (master, speculation) == ("local-cluster[1,1,1024]", "true")
    assert found == [[[0, 3]], [[0, 3], [1, 3]]] and ways == ["wide", "wide"]
    assert "nosync.zip" in file
