"""What an epoch costs while old layers are folded and given up behind it, beside one behind which nothing is: the same flow over the same
files, in one session, in turns.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from bench.durability.lanes import Lane, race
from bench.durability.statistics import tail
from bench.inputs import Input
from bench.session import open_session
from nosync.journal.entries import Keeping
from nosync.model.identifiers import NO_EPOCH
from nosync.model.ladder import ladder_of

KEPT = 10
TURN, SKIPPED_ROUNDS = 16, 1


def without_compaction(lane: Lane) -> None:
    """Newest covers are kept short as ever: that is no compaction of the past."""
    upkeep: Any = lane.stepping.upkeep
    upkeep.may_go = lambda newest: NO_EPOCH
    upkeep.compactor.step = lambda everywhere: False


def on_and_off(folder: Path, data: Input) -> dict[str, float]:
    spark = open_session("nosync", "1g", folder / "scratch")
    lanes = [Lane(name, spark, data, folder / name) for name in ("off", "on")]
    for lane in lanes:
        lane.stepping.journal.append(Keeping(ladder_of(KEPT).said))
    without_compaction(lanes[0])
    try:
        race(lanes, TURN, print)
    finally:
        for lane in lanes:
            lane.close()
    off, on = (tail(lane.seconds, SKIPPED_ROUNDS) for lane in lanes)
    middle = [statistics.median(one for turn in lane.seconds[SKIPPED_ROUNDS:] for one in turn) for lane in lanes]
    files = [sum(1 for _ in (folder / lane.name / "layers").rglob("*.arrow")) for lane in lanes]
    spark.stop()
    return {
        "p95 on / off": on / off, "median on / off": middle[1] / middle[0], "p95 off, ms": 1e3 * off, "p95 on, ms": 1e3 * on,
        "layers off": files[0], "layers on": files[1],
    }  # fmt: skip
