"""`python -m bench.study`: how large the log is, and how long it takes to restore from it, by when it is compacted.

After A. Chronarakis, A. Papaioannou and K. Magoutis, "On the impact of log compaction on incrementally checkpointing stateful
stream-processing operators" (2019), who looked at the changelog of Samza in Kafka: dirty ratio 0.01, 0.33 and 0.66, segments of 100 ms and
of 1 s, and windows that accumulate one value or retain all rows. Here the log is a flow's own, of which only the newest state is kept.

Epochs follow one another every 100 ms of a clock that the program moves, and all that is due behind the stream is done between them: so
bytes are the same on every machine. What is timed is timed on this one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from bench.session import open_session
from bench.study import made
from bench.study.picture import draw
from nosync.duties.merge_worker import carry_out
from nosync.duties.merging import DueMerges, Merger, due_folds
from nosync.graph.timed import expiries
from nosync.journal.entries import Merged
from nosync.model.compaction import Compaction
from nosync.model.ladder import ladder_of
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.state.cover import pieces
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

RATIOS, AGES = (0.01, 0.33, 0.66), (0.1, 1.0)
EPOCH_SECONDS = 0.1
SCHEMA = "room int, t double, at timestamp"
KEYS, LATENESS = 200, "200 milliseconds"
PLACES = ("layers", "journal/records", "journal/rollups")  # journal/segments are the past of the journal, which no restore reads
RESTORES = 3


def accumulating(events: DataFrame, window: str) -> DataFrame:
    """One value a window and key."""
    sums = events.groupBy(F.window("at", window).alias("w"), "room").agg(F.sum("t").alias("t"), F.count("*").alias("n"))
    return sums.select("w.start", "room", "t", "n")


def retaining(events: DataFrame, window: str) -> DataFrame:
    """All rows of a window: their middle cannot be kept up to date without them."""
    middles = events.groupBy(F.window("at", window).alias("w"), "room").agg(F.percentile("t", 0.5).alias("t"))
    return middles.select("w.start", "room", "t")


KINDS = {"accumulating": accumulating, "retain-all": retaining}


class Idle(Merger):
    """What is due is merged between epochs, by hand."""

    def offer(self, *_: Any) -> None:
        """Nothing is begun."""


@dataclass
class Studied:
    """One flow with its knobs. `sizes`: bytes of the log after each epoch; `rewritten`: bytes of all merged layers."""

    spark: SparkSession
    kind: str
    window: str
    knobs: Compaction
    folder: Path
    now: float = 1_767_225_600.0
    rewritten: int = 0

    def __post_init__(self) -> None:
        self.sizes: list[int] = []
        self.source = ns.memory(SCHEMA)
        self.remote = open_remote((self.folder / "remote").as_uri())

    def begun(self, home: Path) -> Stepping:
        flow, source = ns.Flow("study", self.spark), self.source if home.name == "home" else ns.memory(SCHEMA)
        events = flow.source("events", source, watermark=("at", LATENESS))
        flow.view("windows", KINDS[self.kind](events, self.window), emit="final")
        policy = LogStructured(patience_seconds=0.0)
        program = replace(flow.program(), keep=ladder_of(1), compaction=self.knobs, policy=policy)
        stepping = begin(program, home, 1, self.remote, clock=lambda: self.now).recover()
        stepping.merger = Idle(str(home), "study", stepping.run)
        return stepping

    def run(self, epochs: int, rows: int) -> None:
        stepping, chance = self.begun(self.folder / "home"), np.random.default_rng(1)
        due = DueMerges(frozenset(stepping.program.shape().sinks), expiries(stepping.program.graph), knobs=self.knobs)
        for _ in range(epochs):
            times = self.now + chance.random(rows) * EPOCH_SECONDS
            rooms, values = chance.integers(0, KEYS, rows).tolist(), (chance.integers(0, 400, rows) / 10).tolist()
            self.source.add([(room, t, datetime.fromtimestamp(at, UTC)) for room, t, at in zip(rooms, values, times, strict=True)])
            self.now += EPOCH_SECONDS
            assert stepping.step() is not None
            self._tidy(stepping, due)
            self.sizes.append(self.bytes())
        stepping.close()

    def _tidy(self, stepping: Stepping, due: DueMerges) -> None:
        """All that goes on behind the stream, until nothing is left to do."""
        while True:
            while any(duty() for duty in stepping.upkeep.duties().values()):
                pass
            orders = list(self._orders(stepping, due))
            if not orders:
                return
            for order in orders:
                layer = LayerInfo.from_json(carry_out(str(stepping.home), "study", stepping.run, order))
                self.rewritten += layer.bytes
                stepping.journal.append(Merged(layer))

    def _orders(self, stepping: Stepping, due: DueMerges) -> Iterator[dict[str, object]]:
        image = stepping.image
        yield from chain(*due.orders(image)[:1])
        parts = [(trace, held) for trace, written in image.traces.items() for held in pieces(written)]
        yield from due_folds(image, stepping.upkeep.may_go(image.epoch), parts, self.knobs)

    def bytes(self) -> int:
        disk = LocalDisk(self.folder / "home")
        return sum(sum(disk.sizes(place).values()) for place in PLACES)

    def restored(self) -> float:
        """Seconds until the state is together on another disk, from the remote alone."""
        shutil.rmtree(self.folder / "other", ignore_errors=True)
        begun = time.perf_counter()
        self.begun(self.folder / "other").close()
        return time.perf_counter() - begun


def study(spark: SparkSession, folder: Path, kind: str, window: str, ratio: float, age: float, epochs: int, rows: int) -> dict[str, Any]:
    """One run, and what it showed after its first third."""
    folder.mkdir(parents=True)
    studied = Studied(spark, kind, window, Compaction(None, age, ratio), folder)
    studied.run(epochs, rows)
    settled = studied.sizes[epochs // 3 :]
    seconds = [studied.restored() for _ in range(RESTORES)]
    fetched = LocalDisk(folder / "other").sizes("layers")
    return {
        "kind": kind,
        "dirty ratio": ratio,
        "segment age": age,
        "log, median KiB": statistics.median(settled) / 1024,
        "log, most KiB": max(settled) / 1024,
        "rewritten, MiB": studied.rewritten / 2**20,
        "restore, ms": 1e3 * min(seconds),
        "layers fetched": len(fetched),
        "fetched, KiB": sum(fetched.values()) / 1024,
        "sizes": studied.sizes,
    }


def in_markdown(found: list[dict[str, Any]]) -> str:
    heads = [head for head in found[0] if head != "sizes"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for one in found:
        cells = (one[head] for head in heads)
        lines.append("| " + " | ".join(f"{cell:,.4g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.study")
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--rows", type=int, default=500, help="an epoch")
    parser.add_argument("--made", action="store_true", help="a log that is written layer by layer, without Spark")
    parser.add_argument("--window", default="10 seconds")
    parser.add_argument("--work", type=Path, default=Path("build/bench-study"))
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    given = parser.parse_args()
    work = given.work.absolute()
    shutil.rmtree(work, ignore_errors=True)
    spark = None if given.made else open_session("nosync", "1g", work / "scratch")
    found = []
    for kind in KINDS:
        for age in AGES:
            for ratio in RATIOS:
                folder = work / f"{kind}-{age}-{ratio}"
                if spark is None:
                    found.append(made.study(folder, kind, ratio, age, given.epochs, given.rows, KEYS))
                else:
                    found.append(study(spark, folder, kind, given.window, ratio, age, given.epochs, given.rows))
                print(json.dumps({name: value for name, value in found[-1].items() if name != "sizes"}), flush=True)
    given.results.mkdir(parents=True, exist_ok=True)
    (given.results / "study.json").write_text(json.dumps(found))
    draw(given.results / "study.png", found, EPOCH_SECONDS)
    print(in_markdown(found))
    shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
