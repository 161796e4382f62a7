"""`python -m bench.soak`: a flow that runs for long at full speed and is killed now and then, watched from outside.

It is killed at random moments of the first half, each time with all its processes, and started again; the second half it is left alone, so
that what grows in a process has time to show. Then all input is processed, what the sink has is compared with the view, and the verdict is
printed. Ends with 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq

import nosync as ns
from bench.soak.drawing import draw
from bench.soak.feeding import Feeder
from bench.soak.judging import verdicts
from bench.soak.sampling import Sample, Sampler
from tests.crash.processes import environment, family, kill_all, started

SAMPLE_SECONDS = 5.0
FEED_SECONDS = 0.2
FINISH_SECONDS = 900.0
MINUTES_A_KILL = 4.0


class Soak:
    """`place` is a folder of its own; `kills` are the moments, in seconds from the begin."""

    def __init__(self, place: Path, seconds: float, kills: list[float]) -> None:
        self.place, self.seconds, self.kills = place, seconds, kills
        self.feeder, self.sampler = Feeder(place / "in"), Sampler(place)
        self.samples: list[Sample] = []
        self.lives = 0

    def start(self) -> None:
        self.lives, self.begun, self.found = self.lives + 1, time.monotonic(), self._epoch()
        command = [sys.executable, "-m", "bench.soak.flow", str(self.place)]
        self.process = started(command, self.place, self.place / "log", environment())

    def run(self) -> None:
        self.feeder.keep_ahead(0)
        self.start()
        try:
            self._watch(time.monotonic())
            (self.place / "finish").touch()
            if self.process.wait(FINISH_SECONDS) != 0:
                raise SystemExit(self._words())
        finally:
            if self.process.poll() is None:
                kill_all(self.process)

    def _watch(self, begun: float) -> None:
        looked = begun
        while (now := time.monotonic()) < begun + self.seconds:
            if self.process.poll() is not None:
                raise SystemExit(self._words())
            if self.kills and now - begun >= self.kills[0] and self._epoch() > self.found:
                self.kills.pop(0)
                kill_all(self.process)
                self.start()
            self.feeder.keep_ahead(self._epoch())
            if now - looked >= SAMPLE_SECONDS and self._epoch():
                looked = now
                self.samples.append(self.sampler.sample(family(self.process), self.lives, now - self.begun))
                _report(self.samples[-1], begun)
            time.sleep(FEED_SECONDS)

    def _epoch(self) -> int:
        """The newest that was noted."""
        return int(self._last("notes")["epoch"]) if (self.place / "notes").exists() else 0

    def _last(self, name: str) -> dict[str, float]:
        with (self.place / name).open("rb") as lines:
            lines.seek(max(0, lines.seek(0, 2) - 1000))
            found = [line for line in lines.read().split(b"\n")[:-1] if line.endswith(b"}") and line.startswith(b"{")]
        return json.loads(found[-1]) if found else {"epoch": 0}

    def _words(self) -> str:
        return (self.place / "log").read_text(errors="replace")[-4000:]

    def noted(self, name: str) -> list[dict[str, float]]:
        lines = (self.place / name).read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]  # a kill may tear one


def _report(sample: Sample, begun: float) -> None:
    figures = f"PSS {sample.pss >> 20} MiB, {sample.handles} handles, {sample.threads} threads, {sample.mapped} mapped"
    files = sum(count for count, _ in sample.home.values())
    seconds = time.monotonic() - begun
    print(f"{seconds:6.0f} s  epoch {sample.epoch}  {figures}, {files} files, {sample.most_files} in one trace", flush=True)


def wrong_output(place: Path) -> list[str]:
    """Where what the precise sink has is not the view."""
    sums: Counter[str] = Counter()
    for file in (place / "out").glob("*.parquet"):
        for row in pq.read_table(file).to_pylist():
            del row["_epoch"]
            sums[repr({**row, "_diff": 0})] += row["_diff"]
    expected = Counter(repr({**row, "_diff": 0}) for row in ns.open(place / "home").view("minutes").to_pylist())
    return sorted(row for row in sums.keys() | expected.keys() if sums[row] != expected[row])


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kills", type=int, help="how many; without it, one in four minutes of the first half")
    parser.add_argument("--trigger", help='the least time between epochs, as "1 second": for a machine that is shared')
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=Path("build/bench-soak"))
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    given = parser.parse_args()
    place = given.work.absolute()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    shutil.rmtree(place, ignore_errors=True)
    seconds, chance = 60 * given.minutes, random.Random(given.seed)
    kills = max(1, round(given.minutes / 2 / MINUTES_A_KILL)) if given.kills is None else given.kills
    soak = Soak(place, seconds, sorted(chance.uniform(0.05, 0.5) * seconds for _ in range(kills)))
    if given.trigger:
        (place / "trigger").write_text(given.trigger)
    soak.run()
    first, last = soak.samples[0].at, soak.samples[-1].at  # what is done after has no more input
    epochs = [(note["at"], note["ms"]) for note in soak.noted("notes") if first <= note["at"] <= last]
    heap = [(note["at"], note["used"], note["live"]) for note in soak.noted("heap") if first <= note["at"] <= last]
    given.results.mkdir(parents=True, exist_ok=True)
    draw(given.results / "soak.png", soak.samples, epochs, heap)
    found = verdicts(soak.samples, epochs, [(at, live) for at, _, live in heap])
    facts = {"samples": [asdict(sample) for sample in soak.samples], "verdicts": [asdict(one) for one in found], "seed": given.seed}
    (given.results / "soak.json").write_text(json.dumps(facts | {"epochs": epochs, "heap": heap}))
    print(f"{len(epochs)} epochs, {soak.lives} lives; {given.results / 'soak.png'}")
    for one in found:
        target = "" if one.most is None else f"at most {one.most:g}"
        print(f"{one.name:52} {one.figure:10.2f}  {target:12} {'reached' if one.reached else 'MISSED':8} {one.said}")
    wrong = wrong_output(place)
    print("the sink has what the view has" if not wrong else f"the sink differs from the view: {wrong[:5]}")
    sys.exit(0 if all(one.reached for one in found) and not wrong else 1)


if __name__ == "__main__":
    main()
