"""Executors that keep layers of their own, on a real cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nosync import open as open_home
from tests.peers.unshared_home import EPOCHS, KILLED_AFTER


@pytest.mark.slow
def test_what_is_lost_with_an_executor_is_computed_again_while_the_run_goes_on(tmp_path: Path) -> None:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.peers.unshared_home", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["differing"] == []
    assert len(found["lost"]) == 1 and found["lost"][0][0] == KILLED_AFTER and found["lost"][0][1] > 0
    assert len(found["places"]) == 3 and found["at home"] and found["runs"] == "1"  # three executors, one run
    home = open_home(tmp_path / "home")
    assert home.epoch == EPOCHS
    assert sum(row["times"] for row in home.view("spent").to_pylist()) == EPOCHS * 40
