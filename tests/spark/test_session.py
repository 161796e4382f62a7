"""The flow's own session: what its settings mean for reading."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import nosync
from nosync.spark.session import calm_sessions, flow_session


def test_one_file_of_a_few_megabytes_is_read_by_all_cores(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n" * (3 << 18))
    rows = flow_session(spark, shards=2).read.schema("a int, b int").csv(str(tmp_path))
    assert rows.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism


def test_it_starts_from_a_path_with_spaces(tmp_path: Path) -> None:
    place = tmp_path / "a place of nosync's"
    shutil.copytree(Path(nosync.__file__).parent, place / "nosync")
    code = "from nosync.spark.session import active_or_local as it\nspark = it()\nprint(it.__code__.co_filename, spark.range(3).count())"
    environment = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == f"{place / 'nosync/spark/session.py'} 3", done.stderr


def test_sessions_of_a_program_are_quiet_while_it_is_loaded_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    environment: dict[str, str] = {"SPARK_SUBMIT_OPTS": "-Da=b"}
    with calm_sessions(environment):
        assert environment["PYSPARK_SUBMIT_ARGS"] == "--conf spark.ui.showConsoleProgress=false pyspark-shell"
        assert "log4j2.properties -Da=b" in environment["SPARK_SUBMIT_OPTS"]
    assert environment == {"SPARK_SUBMIT_OPTS": "-Da=b"}
    (tmp_path / "log4j2.properties").touch()
    own = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}
    with calm_sessions(said := dict(own)):
        assert said == own
    assert said == own
