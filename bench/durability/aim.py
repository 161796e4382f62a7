"""`python -m bench.durability.aim`: whether `recover_within` is held to, on the clock.

A flow runs many small epochs with its copy in another folder, then its home is lost. A start on an empty home is timed until its state is
together, and held against the aim and against what `status` had estimated. Spark runs already; declaring the flow is counted.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import nosync as ns
from bench.durability.__main__ import HERE
from bench.session import open_session
from nosync.model.estimate import Estimate
from nosync.recovery.restore import Recovered

ROWS = 500


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.durability.aim", description=__doc__)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--within", type=float, action="append", metavar="SECONDS", help="aims, one after the other; 5 and 20 by default")
    parser.add_argument("--work", type=Path, default=HERE / "work" / "aim", metavar="DIR")
    return parser.parse_args(given)


def flow_over(folder: Path) -> ns.Flow:
    flow = ns.Flow("aim")
    rows = flow.source("s", ns.files(folder, schema="k bigint, x bigint", maxFilesPerTrigger=1))
    flow.view("totals", rows.groupBy("k").sum("x"))
    flow.view("rows", rows)
    return flow


def write(folder: Path, epochs: int) -> None:
    folder.mkdir(parents=True)
    for epoch in range(epochs):
        keys = [(epoch * 37 + row) % 5000 for row in range(ROWS)]
        pq.write_table(pa.table({"k": keys, "x": [epoch] * ROWS}), folder / f"{epoch:06d}.parquet")


def measured(folder: Path, work: Path, remote: str, within: float) -> tuple[Estimate | None, float, Recovered]:
    """What was estimated at the end of a run, and the seconds that a start on an empty home took."""
    with flow_over(folder).start(home=work / "first", remote=remote, recover_within=f"{within:g}s", shards=2) as run:
        run.processAllAvailable()
        while run.safe["site"] < run.epoch:
            time.sleep(0.1)
        run._loop.ready().upkeep.measure()
        estimate = run.status.estimate
    shutil.rmtree(work / "first")
    started = time.perf_counter()
    with flow_over(folder).start(home=work / "second", remote=remote, recover_within=f"{within:g}s") as run:
        recovered = run.recovered
        return estimate, time.perf_counter() - started, recovered


def main(given: Sequence[str]) -> int:
    asked = arguments(given)
    shutil.rmtree(asked.work, ignore_errors=True)
    folder, missed = asked.work / "in", 0
    write(folder, asked.epochs)
    open_session("nosync", "2g", asked.work / "scratch")
    for within in asked.within or [5.0, 20.0]:
        work = asked.work / f"{within:g}"
        estimate, seconds, recovered = measured(folder, work, (work / "copy").absolute().as_uri(), within)
        held = seconds <= within
        missed += not held
        words = f"estimated {estimate.seconds:g} s, {estimate.effort}, {estimate.pace}" if estimate else "no estimate"
        verdict = f"within {within:g} s: {seconds:.1f} s ({'held' if held else 'missed'})"
        print(f"{verdict}; {words}; {recovered.fetched} files fetched", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
