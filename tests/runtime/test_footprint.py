"""What a run takes is measured while it runs, and said by the run, by its progress, and to others who look at its home."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.model.errors import Invalid
from nosync.runtime import footprint
from nosync.runtime.footprint import process_bytes, processes_below
from tests.crash.waiting import until


def test_a_run_says_what_it_takes(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "SECONDS", 0.1)
    flow, source = ns.Flow("shop", quick), ns.memory("x int")
    flow.view("count", flow.source("numbers", source).groupBy("x").count())
    with pytest.raises(Invalid, match="no knob") as refused:
        flow.start(tmp_path / "home", compaction={"dirty ration": 0.3})
    assert 'Did you mean "dirty ratio"' in str(refused.value)
    with flow.start(tmp_path / "home", shards=1, quiet=True, compaction={"dirty ratio": 0.3, "segment age": "1 minute"}) as run:
        source.add([(1,)])
        run.processAllAvailable()
        until(lambda: run.status.footprint is not None, seconds=60)
        source.add([(2,)])
        run.processAllAvailable()
        progress, said = run.lastProgress, run.status.footprint
        assert run._loop.stepping is not None and run._loop.stepping.merger._knobs == run._loop.stepping.upkeep.roller.knobs
        assert run._loop.stepping.upkeep.roller.knobs.dirty_ratio == 0.3
    assert progress is not None and said is not None
    assert 0 < progress["memory"]["heapLiveBytes"] <= progress["memory"]["heapMaxBytes"] and progress["memory"]["processBytes"] > 1 << 20
    assert progress["storage"]["files"] > 0 and "givesUpNext" in progress["storage"]
    assert progress["storage"]["inputBytes"] > 0 and said.processes > 1
    assert ns.open(tmp_path / "home").status.footprint is not None


def test_a_process_that_was_started_counts_as_long_as_it_lives() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in processes_below(os.getpid()) and process_bytes(child.pid) > 0
    finally:
        child.communicate()
    assert child.pid not in processes_below(os.getpid()) and process_bytes(child.pid) == 0
