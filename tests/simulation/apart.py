"""Histories in which tasks do not see the home: they write layers on hosts of their own, which come and go. What lies there is brought home
behind the stream, and made again in the middle of a run where a host is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from nosync.duties.merging import _arrived
from nosync.journal.entries import Merged, Opened
from nosync.journal.journal import Journal
from nosync.model.engine import Targets
from nosync.model.errors import Unavailable
from nosync.model.hash_range import HashRange
from nosync.model.layers import Covers, LayerInfo
from nosync.peers.arrivals import Arrivals
from nosync.peers.client import Unanswered
from nosync.recovery.restore import Recovered, recover
from nosync.runtime.mending import Mending
from nosync.tiers.host import HostTier

from .history import History
from .life import Life
from .places import Host, Link
from .program import DictEngine, digest, values_of
from .tasks import Task
from .world import Broken, World

WORKERS = 3


@dataclass
class ApartEngine(DictEngine):
    """Tasks write on some worker, and read what is in the home, else where it was written. `workers`: by place, what lies there. `writes`:
    by who computes an epoch, on which worker; the merger, which may come in between, writes into the home.
    """

    workers: dict[str, dict[str, bytes]] = field(default_factory=dict)
    writes: dict[Task | None, str] = field(default_factory=dict)

    def _layers(self, wanted: Mapping[str, dict[int, Any]], openings: Sequence[Opened], targets: Targets | None) -> Sequence[LayerInfo]:
        me = self.world.tasks.current
        self.writes[me] = self.world.random.choice(sorted(self.workers))
        try:
            return super()._layers(wanted, openings, targets)
        finally:
            del self.writes[me]

    def write(self, trace: str, held: HashRange, lower: int, upper: int, values: Mapping[Any, Any]) -> LayerInfo:
        if (place := self.writes.get(self.world.tasks.current)) is None:
            return super().write(trace, held, lower, upper, values)
        content = json.dumps(values).encode()
        self.written += 1
        path = f"layers/{trace}/{held}/{lower:012d}-{upper}-{self.run}-{self.written:x}.arrow"
        self.world.operation("worker", "write", lambda: self._there(place, path).__setitem__(path, content))
        kind: Any = "diffs" if trace in ("rows", "pairs") else "upserts"
        return LayerInfo(trace, held, lower, upper, kind, path, len(values), len(content), digest(content), place=place)

    def _there(self, place: str, path: str) -> dict[str, bytes]:
        if place not in self.workers:
            raise Unavailable(f"{place} is gone, and {path} with it")
        return self.workers[place]

    def read(self, layer: LayerInfo) -> dict[str, Any]:
        if not layer.place or layer.path in self.disk.files:
            return super().read(layer)
        content = self._there(layer.place, layer.path).get(layer.path)
        if content is None:
            raise Unavailable(f"{layer.path} is nowhere to be had")
        return values_of(content)


class ApartLife(Life):
    """A run on a cluster. Its executors end with it."""

    history: ApartHistory

    def __init__(self, history: History, host: Host, remote: Link | None, follows: int | None = None) -> None:
        super().__init__(history, host, remote, follows)
        self.workers: dict[str, dict[str, bytes]] = {}

    def make_engine(self, journal: Journal) -> DictEngine:
        history = self.history
        self.workers |= {f"10.0.{history.starts}.{number}:1": {} for number in range(WORKERS)}
        self.arrivals = arrivals = Arrivals(journal, self.disk, self.fetch, lambda place, paths: None, journal.number)
        pool: Any = SimpleNamespace(map=map)
        arrivals._pool.shutdown()
        arrivals._pool = pool
        engine = ApartEngine(
            self.world, self.disk, history.lasting, journal.run, history.dice, history.rotten, workers=self.workers
        )  # fmt: skip
        return engine

    def fetch(self, layer: LayerInfo) -> None:
        """What the world does to a question is the other host's fault, what it does to the file is this one's."""
        try:
            content = self.world.operation("worker", "read", lambda: self.workers.get(layer.place, {}).get(layer.path))
        except Unavailable as error:
            raise Unanswered(error.message) from error
        if content is None:
            raise Unanswered(f"{layer.path} is not at {layer.place}")
        self.disk.replace(layer.path, content)

    def deliver(self, sink: str, first: int, last: int) -> None:
        """What is delivered is read in the home."""
        assert self.journal is not None
        trace = next(trace for trace, name in self.shape().sinks.items() if name == sink)
        layers = [layer for found in self.journal.image.traces.get(trace, {}).values() for layer in found]
        away = [layer.path for layer in layers if first < layer.upper <= last + 1 and layer.path not in self.disk.files]
        if away:
            raise Broken(f"epochs {first} to {last} are delivered to {sink}, and {away} are not here")
        super().deliver(sink, first, last)

    def lose_worker(self) -> None:
        """With all that lies there; another comes in its place."""
        self.history.lost += 1
        del self.workers[self.world.random.choice(sorted(self.workers))]
        self.workers[f"10.1.{self.history.starts}.{self.history.lost}:1"] = {}

    def begin(self) -> None:
        super().begin()
        assert self.journal is not None and self.arrivals is not None
        self.mending = Mending(self.journal, self.arrivals, self.make_again, self.finish_merges, self.epochs.opening)

    def stream(self) -> bool:
        self.mending.step()
        try:
            return super().stream()
        except Unavailable as error:
            self.mending.failed(error)
            raise

    def make_again(self, doubted: frozenset[str]) -> Recovered:
        assert self.journal is not None
        done = recover(self.journal, self.disk, self.remote, self.engine, self.shape(), self.engine.verify, doubted)
        self.history.repaired |= bool(done.recomputed or done.fetched)
        self.history.mended += bool(done.recomputed)
        return done

    def finish_merges(self) -> None:
        """One that has not begun is not begun any more."""
        assert self.journal is not None
        while "merger" in self.tasks:
            self.world.tasks.pause()
        self.to_merge = None
        while self.merged:
            self.journal.append(Merged(self.merged.pop()))

    def to_be_merged(self, trace: str) -> Covers:
        assert self.arrivals is not None
        return {held: _arrived(layers, self.arrivals.is_coming) for held, layers in super().to_be_merged(trace).items()}

    def kill(self) -> None:
        super().kill()
        self.workers.clear()


class ApartHistory(History):
    """Now and then a worker is lost. Chance as in the history of the same seed."""

    kind = ApartLife

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.lost = self.mended = 0
        self.loses = seed % 4 * 0.1

    def tick(self) -> None:
        super().tick()
        life = self.life
        if isinstance(life, ApartLife) and life.ready and self.world.random.random() < self.loses:
            life.lose_worker()


def simulate_apart(seed: int, steps: int = 60) -> tuple[World, int]:
    """Raises `Broken` where the contract is not kept; says how often a run made again what was lost with a worker."""
    history = ApartHistory(seed)
    history.run(steps)
    return history.world, history.mended


def _claims_all(self: HostTier, *given: Any, plain: Callable[..., None] = HostTier.__init__, **named: Any) -> None:
    plain(self, *given, **named)
    self.arrived = None


MUTATIONS: dict[str, tuple[Callable[[], Any], int]] = {
    "what is on its way home counts as synced": (lambda: patch.object(HostTier, "__init__", _claims_all), 0),
    "nothing is made again in the middle of a run": (lambda: patch.object(Mending, "step", lambda self: False), 13),
    "what is delivered need not be home": (lambda: patch.object(Arrivals, "catch_up", lambda self: None), 0),
}
