"""The same flow over the same files, durable in different ways, in one warm session.

Each lane has a home of its own. Lanes take turns, some epochs each, and a turn ends only when all that ran behind it is done: what a lane
does behind its epochs slows down its own epochs, and nobody else's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

import nosync as ns
from bench.inputs import Input
from bench.queries import PLAIN
from nosync.duties.tending import Tending
from nosync.model.errors import Conflict, NosyncError
from nosync.runtime.opener import Opener
from nosync.runtime.starting import begin
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

DRAIN_SECONDS = 120.0


class Forgetful(LocalDisk):
    """The home of a flow without durability: layers are files, since the state is made of them; the journal is in memory, and nothing
    is ever synced.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._kept: dict[str, bytes] = {}

    def create(self, name: str, content: bytes) -> None:
        if name in self._kept:
            raise Conflict(f"{name} exists")
        self._kept[name] = content

    def replace(self, name: str, content: bytes) -> None:
        self._kept[name] = content

    def read(self, name: str) -> bytes | None:
        return self._kept.get(name) or super().read(name)

    def exists(self, name: str) -> bool:
        return name in self._kept or super().exists(name)

    def sizes(self, folder: str) -> dict[str, int]:
        kept = {name: len(content) for name, content in self._kept.items() if name.startswith(folder + "/")}
        return super().sizes(folder) | kept

    def sync_files(self, names: object) -> None:
        """Nothing is synced."""

    def sync_folders(self, names: object) -> None:
        """Nothing is synced."""


@dataclass
class Lane:
    """One way to be durable. `seconds` are those of its epochs, one list a turn."""

    name: str
    session: SparkSession
    data: Input
    home: Path
    remote: str | None = None
    durable: bool = True
    seconds: list[list[float]] = field(default_factory=list)
    drained: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        flow = ns.Flow("lane", spark=self.session)
        source = ns.files(self.data.folder, format=self.data.format, schema=self.data.schema, maxFilesPerTrigger=1)
        flow.view("level1", PLAIN["plain"].ask(flow.source("events", source)))
        disk = None if self.durable else Forgetful(self.home.absolute())
        remote = open_remote(self.remote) if self.remote else None
        self.stepping = begin(flow.program(), self.home, 2, remote, disk=disk).recover()
        self.tending = Tending(self.stepping.journal, self.stepping.upkeep, _complain)
        self.opener = Opener(self.stepping.epochs, self.stepping.troubles)

    def turn(self, epochs: int) -> bool:
        """Some epochs as the run's loop would step them, then all that they left to do; says whether there were any."""
        taken = []
        for _ in range(epochs):
            started = time.perf_counter()
            with self.opener:
                done = self.stepping.step()
            if done is None:
                break
            taken.append(time.perf_counter() - started)
        started = time.perf_counter()
        self.tending.drain(DRAIN_SECONDS)
        self.drained.append(time.perf_counter() - started)
        if taken:
            self.seconds.append(taken)
        return bool(taken)

    def close(self) -> None:
        self.opener.stop()
        self.tending.stop()
        self.stepping.close()

    def bytes(self) -> dict[str, int]:
        """Bytes in the home by kind, and bytes that travelled."""
        found = {"layers": 0, "merged": 0, "journal": 0}
        for path in (self.home / "layers").rglob("*.arrow"):
            lower, upper = map(int, path.name.split("-")[:2])
            found["layers" if upper == lower + 1 else "merged"] += path.stat().st_size
        for folder, _, names in os.walk(self.home / "journal"):
            found["journal"] += sum(os.path.getsize(os.path.join(folder, name)) for name in names)
        shipped = [tier for tier in self.stepping.upkeep.standings() if tier.survives == "site"]
        return found | {"shipped": sum(tier.bytes for tier in shipped), "objects": sum(tier.objects for tier in shipped)}


def _complain(error: NosyncError) -> None:
    raise error


def race(lanes: list[Lane], turn_epochs: int, report: Callable[[str], None]) -> None:
    """Turns until the files are used up. The order changes with every round, so that no lane always follows the same one."""
    number = 0
    going = list(lanes)
    while going:
        order = going[number % len(going) :] + going[: number % len(going)]
        going = [lane for lane in order if lane.turn(turn_epochs)]
        going.sort(key=lanes.index)
        number += 1
        if going:
            report(f"round {number}: " + ", ".join(f"{lane.name} {1e3 * min(lane.seconds[-1]):.0f} ms" for lane in going))
