"""Ctrl-C on a real process ends it after the epoch, with everything reported."""

import os
import signal
import subprocess
import sys

import pytest

FLOW = """
import nosync as ns
from pyspark.sql import SparkSession

# A session that the user makes, with PySpark's own daemon.
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
flow = ns.Flow("time_driven")
flow.view("time_driven", flow.source("rate", ns.rate(rowsPerSecond=10)).groupBy().count())
"""


@pytest.mark.slow
def test_ctrl_c_ends_after_the_epoch(tmp_path):
    (tmp_path / "flow.py").write_text(FLOW)
    command = [sys.executable, "-c", "from nosync.cli.main import main; main()", "run", "flow.py", "--home", "home"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        first = process.stdout.readline()
        # As a terminal does: to the whole group, the JVM and the Python workers included.
        os.killpg(process.pid, signal.SIGINT)
        reported, errors = process.communicate(timeout=900)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert first.startswith("epoch"), errors
    assert process.returncode == 0, errors
    assert "stopping after this epoch" in errors
    # Not one of its processes was interrupted, and none complains of those that are gone already.
    assert not [word for word in ("KeyboardInterrupt", "BrokenPipe", "failed to flush") if word in errors], errors
    assert errors.splitlines()[-1] == "to go on: nosync run flow.py --home home"
    epochs = [int(line.split()[1]) for line in (first + reported).splitlines()]
    assert epochs == list(range(1, len(epochs) + 1))
