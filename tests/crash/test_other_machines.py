"""The same input gives the same bits on one core and on four, in any order of tasks; the same rows in any number of shards."""

import os
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import nosync as ns
from nosync.sources.reading import Reading
from nosync.state.layer import open_layer
from tests.crash.driver import suffering_flow
from tests.crash.orders import feed, orders_flow
from tests.crash.processes import ROOT
from tests.metamorphic import checksums, readable, run_all

FILES = range(3)
SINKS = ("safe", "computed")


def started(master: str, place: Path) -> "subprocess.Popen[bytes]":
    """The same program in a process of its own, to the end of its input. Where tasks may fail, some are killed: what kernels had done by
    then counts all the same.
    """
    feed(place / "in", FILES)
    (place / "finish").touch()
    if "," in master:
        (place / "mortal").touch()
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "tests.crash.driver", master, str(place)]
    return subprocess.Popen(command, env=environment, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def here(spark: SparkSession, place: Path, shards: int) -> None:
    feed(place / "in", FILES)
    with suffering_flow(spark, place, place)[0].start(home=place / "home", shards=shards) as run:
        run.processAllAvailable()


def outputs(place: Path) -> dict[str, bytes]:
    return {f"{sink}/{file.name}": file.read_bytes() for sink in SINKS for file in sorted((place / sink).glob("*.parquet"))}


def output_rows(place: Path) -> dict[str, list[str]]:
    files = [file for sink in SINKS for file in sorted((place / sink).glob("*.parquet"))]
    return {f"{file.parent.name}/{file.name}": sorted(map(repr, pq.read_table(file).to_pylist())) for file in files}


def layer_rows(home: Path) -> dict[tuple[str, int], list[str]]:
    """What each trace wrote in each epoch, whichever shards it lies in. What sinks have had is given up: they show it."""
    found: dict[tuple[str, int], list[str]] = {}
    image = ns.open(home).image
    sinks = {sink["trace"] for sink in image.declared.sinks.values()}
    for layer in image.layers():
        if layer.upper == layer.lower + 1 and layer.trace not in sinks:
            rows = [repr(row) for block in open_layer(home, layer).blocks for row in block.to_pylist()]
            found[layer.trace, layer.lower] = sorted(found.get((layer.trace, layer.lower), []) + rows)
    return found


def test_cores_shards_and_killed_tasks_leave_no_trace(quick: SparkSession, tmp_path: Path) -> None:
    others = {cores: started(f"local[{cores}]", tmp_path / f"cores{cores}") for cores in ("1", "4,8")}
    here(quick, tmp_path / "here", shards=2)
    here(quick, tmp_path / "shards", shards=3)
    for cores, process in others.items():
        assert process.wait(900) == 0
        assert checksums(tmp_path / f"cores{cores}/home") == checksums(tmp_path / "here/home") != {}
        assert outputs(tmp_path / f"cores{cores}") == outputs(tmp_path / "here") != {}
        assert (tmp_path / f"cores{cores}/calls").read_text() == (tmp_path / "here/calls").read_text()
    assert readable(tmp_path / "shards/home") == readable(tmp_path / "here/home")
    assert layer_rows(tmp_path / "shards/home") == layer_rows(tmp_path / "here/home")
    assert output_rows(tmp_path / "shards") == output_rows(tmp_path / "here")
    assert (tmp_path / "shards/calls").read_text() == (tmp_path / "here/calls").read_text()


def test_the_order_of_tasks_leaves_no_trace(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an epoch are read by one task each; turned round, every task has another number and comes at another time."""
    feed(tmp_path / "in", range(6))
    for name in ("plain", "turned"):
        session = quick.newSession()
        for setting in ("spark.sql.codegen.wholeStage", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
            session.conf.set(setting, quick.conf.get(setting))
        session.conf.set("spark.sql.files.openCostInBytes", "128m")  # no two files in one task
        flow, _ = orders_flow(session, tmp_path / "in", files=3)
        if name == "turned":
            monkeypatch.setattr(Reading, "_scan", turned(Reading._scan))
        run_all(flow, tmp_path / name)
    assert checksums(tmp_path / "plain") == checksums(tmp_path / "turned") != {}


def turned(scan: Any) -> Any:
    """Reads the files of each slice in the opposite order, each as a frame of its own."""
    return lambda reading, spark, paths, base: reduce(DataFrame.unionAll, [scan(reading, spark, [path], base) for path in reversed(paths)])
