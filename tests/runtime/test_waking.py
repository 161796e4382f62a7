"""An idle run looks for input when it is told that there is some, and when somebody waits for it."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import nosync as ns
from nosync.runtime import loop


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that looks of its own accord once in a minute."""
    for name in ("IDLE_SECONDS", "ANNOUNCED_IDLE_SECONDS", "LONGEST_IDLE_SECONDS"):
        monkeypatch.setattr(loop, name, 60.0)


def test_a_row_that_is_given_wakes_the_run(quick: SparkSession, patient: None, tmp_path: Path) -> None:
    flow, source = ns.Flow("waking", quick), ns.memory("n bigint")
    flow.view("v", flow.source("s", source))
    with flow.start(tmp_path, quiet=True) as run:
        run.processAllAvailable()
        source.add([(1,)])
        assert run._loop.wait_for(lambda: run._loop.progress, 30.0)
    source.add([(2,)])  # nobody is there to be woken
    assert run.lastProgress is not None and run.lastProgress.numInputRows == 1


class Silent:
    """Never says that it has something."""

    append_only = True

    def __init__(self) -> None:
        self.there, self.taken = threading.Event(), False

    def declare(self, name: str, spark: SparkSession) -> Any:
        return spark.range(0).schema

    def start(self, folder: Path, taken: Iterator[Any]) -> None: ...

    def available(self) -> dict[str, int] | None:
        if self.taken or not self.there.is_set():
            return None
        self.taken = True
        return {"rows": 1}

    def read(self, spark: SparkSession, slice: dict[str, int]) -> DataFrame:
        return spark.range(1).selectExpr("id", "1L as _diff")


def test_whoever_waits_for_all_input_waits_for_no_pause(quick: SparkSession, patient: None, tmp_path: Path) -> None:
    flow, source = ns.Flow("waking", quick), Silent()
    flow.view("v", flow.source("s", source))
    with flow.start(tmp_path, quiet=True) as run:
        run.processAllAvailable()
        source.there.set()
        run.processAllAvailable()
        assert run.epoch == 1
