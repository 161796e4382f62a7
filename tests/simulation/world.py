"""Chance, and what it does to every storage call.

Every call passes through `World.operation`, which decides what becomes of it: done; failed and not done; done but reported as timed out;
not done and reported as timed out; done later, when nobody expects it any more; done in part; done and not synced; refused since the
link is cut or the disk full, from here on for a while; a crash before or after it. Before each call another thread, or another process, may
go on.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from nosync.model.errors import Conflict, OutcomeUnknown, Unavailable

from .tasks import Tasks

if TYPE_CHECKING:
    from .places import Host

T = TypeVar("T")
WRITES = ("create", "replace", "delete", "upload", "download", "sync_files", "sync_folders", "deliver")
FILLS = ("create", "replace", "download")  # what needs room on the disk
LATE_OPERATIONS = 300  # a write that timed out may land as many operations later
OUTAGE_OPERATIONS = 80  # a link that is cut, or a disk that is full, in the middle of a step stays so as long
NONE: Mapping[str, Callable[[], object]] = {}

# What happens seldom shall fail often, or it is never seen to; what happens all the time shall fail seldom, or nothing else happens.
SHARE = {
    "home.read": 0.2, "home.sizes": 0.1, "home.exists": 0.3, "remote.read": 0.3, "remote.sizes": 0.2, "remote.exists": 0.5,
    "home.delete": 3, "home.sync_files": 3, "home.sync_folders": 3, "remote.delete": 40, "remote.replace": 20, "remote.download": 5,
    "remote.upload": 4, "remote.create": 2, "sink.deliver": 5, "source.available": 2, "source.read": 4, "source.trim": 40,
}  # fmt: skip


class Broken(Exception):
    """A promise of the contract was not kept."""


class Crash(BaseException):
    """The process is gone, in the middle of whatever it did."""


@dataclass
class World:
    """`faults` is the chance of a failing operation, `crashes` of a crash at one, `outages` of a link or disk that fails from there on,
    `switches` that another thread goes on before it.
    """

    seed: int
    faults: float = 0.0
    crashes: float = 0.0
    outages: float = 0.0
    switches: float = 0.0
    late_writes: bool = False
    operations: int = 0
    seconds: float = 0.0
    seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    tasks: Tasks = field(default_factory=Tasks)
    newest: Callable[[], int] = lambda: 0
    runs_changed: bool = True

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.landing: list[tuple[int, Callable[[], object]]] = []

    def calm(self) -> None:
        self.faults = self.crashes = self.outages = self.switches = 0.0

    def clock(self) -> float:
        """Seconds that only go forward."""
        return self.seconds

    def operation(
        self, place: str, name: str, act: Callable[[], T], host: Host | None = None, others: Mapping[str, Callable[[], object]] = NONE
    ) -> T:
        """`others` are outcomes that only some operations have, and what is done then."""
        self.operations += 1
        self.seconds += 0.02
        task = self.tasks.current
        if task is not None:
            if task.killed:
                raise Crash("killed")
            if self.switches and self.random.random() < self.switches:
                self.events["handed over"] += 1
                self.tasks.pause()
            task.newest = self.newest()
        if self.landing:
            self.land()
        if name == "create":
            self.runs_changed = True
        what = f"{place}.{name}"
        if host is not None and host.refuses(place, name, self.operations):
            return self._refuse(what, name, act)
        chance, more = self.random.random(), SHARE.get(what, 1)
        if chance < self.crashes * more:
            return self._crash(what, act)
        if chance < (self.crashes + self.faults) * more:
            return self._fail(what, name, act, others)
        if host is not None and chance < (self.crashes + self.faults + self.outages) * more and (place == "remote" or name in FILLS):
            host.fails_until(place, self.operations + self.random.randrange(1, OUTAGE_OPERATIONS))
            return self._refuse(what, name, act)
        result = act()
        self.seen[what, "ok", "none"] += 1
        return result

    def land(self, until: int | None = None) -> None:
        """Writes that were given up long ago arrive."""
        until = self.operations if until is None else until
        due = [act for at, act in self.landing if at <= until]
        self.landing = [(at, act) for at, act in self.landing if at > until]
        self.runs_changed = True
        for act in due:
            with suppress(Conflict):
                act()

    def _crash(self, what: str, act: Callable[[], T]) -> T:
        side = self.random.choice(("before", "after"))
        if side == "after":
            with suppress(Conflict, Unavailable):
                act()
        self.seen[what, "crash", side] += 1
        raise Crash(what)

    def _refuse(self, what: str, name: str, act: Callable[[], T]) -> T:
        """Nothing gets through; of a write that was on its way when the link was cut nobody knows."""
        self.seen[what, "refused", "none"] += 1
        if what.startswith("remote.") and name in WRITES and self.random.random() < 0.5:
            if self.late_writes and name != "download" and self.random.random() < 0.2:
                self.later(act)
            raise OutcomeUnknown(f"{what} timed out")
        raise Unavailable(f"{what} was refused")

    def _fail(self, what: str, name: str, act: Callable[[], T], others: Mapping[str, Callable[[], object]]) -> T:
        if name not in WRITES:
            self.seen[what, "failed", "none"] += 1
            raise Unavailable(f"{what} failed")
        late = ("done later",) if self.late_writes and what.startswith("remote.") and name != "download" else ()
        plain = () if "done in part" in others else ("failed",)
        outcome = self.random.choice((*plain, "done, timed out", "not done, timed out", *late, *others, *others))
        self.seen[what, outcome, "none"] += 1
        if outcome == "done, timed out":
            act()
        if outcome == "done later":
            self.later(act)
        if outcome in others:
            others[outcome]()
        if outcome in ("failed", "done in part"):
            raise Unavailable(f"{what} failed")
        raise OutcomeUnknown(f"{what} timed out")

    def later(self, act: Callable[[], object], most: int = LATE_OPERATIONS) -> None:
        self.landing.append((self.operations + self.random.randrange(1, most), act))
