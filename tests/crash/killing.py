"""Kills the program of `driver` at moments that one seed decides, and judges what is left.

Kinds of kills, all by SIGKILL: `driver` (the whole process group, its JVM and workers with it), `early` (the same, while it starts),
`recovering` (the same, as soon as it has taken over), `worker` (a Python worker in the middle of whatever it does), `merger` (the merging
process), `executor` (the JVM of an executor, where there are any).
"""

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.chain import read_chain
from nosync.journal.names import RUNS
from nosync.journal.past import TieredReader, openings, slices
from nosync.state.spine import WIDTH
from nosync.store.disk import LocalDisk
from tests.crash.driver import suffering_flow
from tests.crash.orders import feed, judge
from tests.crash.processes import environment, kill_all, kill_one, started
from tests.crash.waiting import until
from tests.metamorphic import checksums, readable

FINISH_SECONDS = 900
DRIVER = ("driver", "early", "recovering")
LINGER_SECONDS = {"driver": 0.5, "early": 5.0, "recovering": 0.3, "worker": 0.5, "merger": 0.5, "executor": 0.5}


class Victim:
    """The program, alive or not."""

    def __init__(self, place: Path, master: str, chance: random.Random) -> None:
        self.place, self.master, self.chance = place, master, chance
        self.fed = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.log = place / "log"

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.crash.driver", self.master, str(self.place)]
        self.process = started(command, self.place, self.log, environment())

    def epoch(self) -> int:
        return read_chain(LocalDisk(self.place / "home")).image().epoch

    def _runs(self) -> int:
        return len(LocalDisk(self.place / "home").sizes(RUNS))

    def feed(self, count: int) -> None:
        feed(self.place / "in", range(self.fed, self.fed + count))
        self.fed += count

    def suffer(self, kind: str) -> None:
        """One kill. Before one of a start, whoever is alive is killed too."""
        if kind in ("early", "recovering") and self.process is not None:
            self._end()
        self.feed(self.chance.randint(2, 4) + (WIDTH if kind == "merger" else 0))  # it starts with the first merge
        seen, runs = self.epoch(), self._runs()
        if self.process is None:
            self.start()
        if kind == "recovering":
            until(lambda: self._runs() > runs or self._ended(), instead=self._words)
        elif kind != "early":
            until(lambda: self.epoch() > seen or self._ended(), instead=self._words)
        assert not self._ended(), self._words()
        time.sleep(self.chance.random() * LINGER_SECONDS[kind])
        if kind in DRIVER:
            self._end()
        else:
            until(lambda: self._ended() or self._kill_one(kind), instead=self._words)

    def finish(self) -> None:
        """Undisturbed, to the end of the input."""
        (self.place / "finish").touch()
        if self.process is None:
            self.start()
        assert self.process is not None
        assert self.process.wait(FINISH_SECONDS) == 0, self._words()

    def _kill_one(self, kind: str) -> bool:
        assert self.process is not None
        return kill_one(self.process, kind, self.chance)

    def _end(self) -> None:
        assert self.process is not None
        kill_all(self.process)
        self.process = None

    def close(self) -> None:
        if self.process is not None and not self._ended():
            self._end()

    def _ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def _words(self) -> str:
        return self.log.read_text()[-3000:] if self.log.exists() else "no log"


def kill_and_judge(spark: SparkSession, place: Path, kinds: Sequence[str], seed: int, master: str = "local[2,8]") -> None:
    """The kills in this order, an undisturbed end, then everything that was promised."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "in").mkdir()
    victim = Victim(place, master, random.Random(seed))
    try:
        for kind in kinds:
            victim.suffer(kind)
        victim.finish()
    finally:
        victim.close()
    assert sum(len(files) for files in _files(place)) == victim.fed
    newest = ns.open(place / "home").epoch
    judge(spark, place / "home", place / "in", sorted({1, newest // 2 or 1, newest}))
    check_outputs(place, newest)
    check_replay(spark, place)


def _files(place: Path) -> list[list[str]]:
    disk = LocalDisk(place / "home")
    chain = read_chain(disk)
    return [entry.slices["orders"]["files"] for entry in openings(TieredReader(disk, None), chain.base, chain.records)]


def check_outputs(place: Path, newest: int) -> None:
    """The sums of what went out are the views; the function had every epoch, in order, and twice only the same."""
    for folder, view in (("safe", "customers"), ("computed", "levels")):
        sums: dict[str, int] = {}
        for file in sorted((place / folder).glob("*.parquet")):
            for row in pq.read_table(file).to_pylist():
                assert row.pop("_epoch") == int(file.stem.removeprefix("epoch-")), file
                diff = row.pop("_diff")
                sums[repr(row)] = sums.get(repr(row), 0) + diff
        expected = sorted(map(repr, ns.open(place / "home").view(view).to_pylist()))
        assert sorted(row for row, count in sums.items() for _ in range(count)) == expected and min(sums.values()) >= 0
    firsts: dict[int, str] = {}
    for line in (place / "calls").read_text().splitlines():
        epoch, digest = line.split()
        assert firsts.setdefault(int(epoch), digest) == digest, f"epoch {epoch} came again with other rows"
    assert list(firsts) == list(range(1, newest + 1))


def check_replay(spark: SparkSession, place: Path) -> None:
    """An undisturbed run over the same recorded epochs leaves the same layers and the same output, byte for byte."""
    disk = LocalDisk(place / "home")
    chain = read_chain(disk)
    recorded = slices(openings(TieredReader(disk, None), chain.base, chain.records), "orders")
    again = place / "again"
    again.mkdir()
    flow, _ = suffering_flow(spark, place, again)
    sources = flow.program().sources
    sources["orders"] = replace(sources["orders"], available=lambda: next(recorded, None))
    with flow.start(home=again / "home", shards=2) as run:
        run.processAllAvailable()
    assert checksums(again / "home") == checksums(place / "home")
    assert readable(again / "home") == readable(place / "home")
    for folder in ("safe", "computed"):
        names = sorted(file.name for file in (again / folder).glob("*.parquet"))
        assert sorted(file.name for file in (place / folder).glob("*.parquet")) == names
        for name in names:
            assert (again / folder / name).read_bytes() == (place / folder / name).read_bytes(), name
    assert (again / "calls").read_text().split("\n") == list(dict.fromkeys((place / "calls").read_text().split("\n")))
