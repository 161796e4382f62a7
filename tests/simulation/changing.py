"""Histories in which the program changes now and then: an operator and a sink of their own come with each version, those before are gone.

The operator sums events by their remainder; by which number depends on the version, so that state of another version would be noticed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nosync.journal.entries import Declared, Opened
from nosync.journal.journal import Journal
from nosync.model.engine import CoversOf, Outcome, Targets
from nosync.model.layers import LayerInfo
from nosync.model.watermark import History as Times
from nosync.model.watermark import nothing_seen
from nosync.recovery.plan import Shape
from nosync.recovery.restore import Recovered, unreported
from nosync.runtime.change import difference
from nosync.runtime.rebuilding import ProgramChange
from nosync.runtime.takeover import Taking

from .history import History
from .life import Life
from .places import Host
from .program import HALVES, DictEngine, Sink, events_of
from .world import Broken, World


def names(version: int) -> tuple[str, str]:
    """The trace and the sink's output of a version."""
    return f"rests@{version}", f"more {version}/rows"


class ChangedEngine(DictEngine):
    """Computes one more trace, and its change for one more sink."""

    version = 0

    def compute(self, openings: Sequence[Opened], covers: CoversOf, targets: Targets | None = None, seen: Times = nothing_seen) -> Outcome:
        outcome = super().compute(openings, covers, targets)
        if not self.version:
            return outcome
        trace, output = names(self.version)
        if targets is not None and not {trace, output} & targets.keys():
            return outcome
        before = self.state(trace, covers)
        after = dict(before)
        for event in self.events(openings):
            after[event % (self.version + 2)] = after.get(event % (self.version + 2), 0) + event
        lower, upper = openings[0].epoch, openings[-1].epoch + 1
        change = {key: after[key] for key in sorted(after) if after[key] != before.get(key)}
        made: list[LayerInfo] = []
        for shard in (0, 1):
            mine = {key: value for key, value in change.items() if key % 2 == shard}
            if mine and (targets is None or HALVES[shard] in targets.get(trace, ())):
                made.append(self.write(trace, HALVES[shard], lower, upper, mine))
        if change and (targets is None or HALVES[0] in targets.get(output, ())):
            made.append(self.write(output, HALVES[0], lower, upper, change))
        return replace(outcome, layers=(*outcome.layers, *made))


class ChangingLife(Life):
    """A run of the newest version, or of the one before where that cannot be rebuilt."""

    history: ChangingHistory
    version = 0

    def make_engine(self, journal: Journal) -> DictEngine:
        history = self.history
        engine = ChangedEngine(self.world, self.disk, history.lasting, journal.run, history.dice, history.rotten)
        image = journal.image
        self.before = int(image.declared.settings["version"]) if image.declared else 0
        engine.version = self.version = self.before if image.trimmed else history.version
        return engine

    def shape(self) -> Shape:
        shape = super().shape()
        if not self.version:
            return shape
        trace, output = names(self.version)
        more = {trace: frozenset([trace]), output: frozenset([trace, output])}
        return replace(shape, feeders={**shape.feeders, **more}, sinks={**shape.sinks, output: f"more {self.version}"})

    def sinks(self) -> dict[str, Sink]:
        more = {f"more {self.version}": self.history.more(self.version)} if self.version else {}
        return {**super().sinks(), **more}

    def take_over(self) -> None:
        assert self.journal is not None
        image = self.journal.image
        if self.version == self.before and image.declared is not None:
            return
        shape = self.shape()
        fingerprints = dict.fromkeys(shape.feeders, "same")
        feeding = {trace: sorted(needed) for trace, needed in shape.feeders.items()}
        retired = [name for version in range(1, self.version) for name in names(version)]
        declaration = Declared("f", 2, {"version": str(self.version)}, fingerprints, {}, {}, feeding, retired=retired)
        if not image.epoch:
            self.journal.append(declaration)
            return
        trace, output = names(self.version)
        targets = {trace: frozenset(HALVES), output: frozenset([HALVES[0]])} if self.version else {}
        old = image.declared or replace(declaration, fingerprints=dict.fromkeys(super().shape().feeders, "same"))
        sources, sinks = frozenset(["lasting", "fleeting"]), (f"more {self.version}",) if self.version else ()
        change = ProgramChange(declaration, difference(old, declaration), targets, targets, sources, sinks, self.version % 2 == 0, {})
        Taking(self.journal, self.disk, self.remote, self.engine, unreported).take_over(change, "rebuild")
        self.history.takeovers += 1

    def output(self, sink: str, epoch: int) -> dict[str, Any]:
        if not sink.startswith("more "):
            return super().output(sink, epoch)
        assert self.journal is not None
        trace = self.journal.image.traces.get(names(self.version)[1], {}).get(HALVES[0], [])
        layers = [layer for layer in trace if layer.upper == epoch + 1]
        return self.engine.read(layers[-1]) if layers else {}


class First(Sink):
    """Its first epoch may be any: what was before comes with it."""

    def take(self, first: int, epoch: int, content: dict[str, Any]) -> None:
        if not self.got:
            self.got[epoch] = content
        super().take(first, epoch, content) if min(self.got) < epoch else self._again(epoch, content)

    def _again(self, epoch: int, content: dict[str, Any]) -> None:
        if self.got.get(epoch) != content:
            raise Broken(f"epoch {epoch} was delivered as {self.got.get(epoch)} and then as {content}")


class ChangingHistory(History):
    """Now and then the next start is one of a new version. Chance of its own: the rest is as in the history of the same seed."""

    kind = ChangingLife

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.change = random.Random(seed)
        self.dice = False  # what was rolled before a change must be on the remote before a site is lost
        self.version, self.takeovers = 0, 0
        self.others: dict[int, First] = {}

    def more(self, version: int) -> First:
        return self.others.setdefault(version, First(self.sinks["sink"].release, self.sinks["sink"].precise))

    def make_life(self, host: Host | None = None, follows: int | None = None) -> Life:
        if self.change.random() < 0.6:
            self.version += 1
        return super().make_life(host, follows)

    def check_recovery(self, done: Recovered) -> None:
        """What was rebuilt may have to be computed once more: it has not been safe for as long as its epochs."""

    def check_end(self, life: Life) -> None:
        super().check_end(life)
        assert isinstance(life, ChangingLife) and life.journal is not None
        image, version = life.journal.image, life.version
        if not version:
            return
        wanted: dict[int, int] = {}
        for event in [event for entry in self.promises.openings(life) for event in events_of(self, entry)]:
            wanted[event % (version + 2)] = wanted.get(event % (version + 2), 0) + event
        found = life.engine.state(names(version)[0], lambda name: image.covers(name, image.epoch))
        got = {int(key): value for _, content in sorted(self.more(version).got.items()) for key, value in content.items()}
        if not found == got == wanted:
            raise Broken(f"version {version}: {found} is kept and {got} was delivered, not {wanted}")
        if {trace for trace in image.traces if "@" in trace} - {names(version)[0]}:
            raise Broken(f"state of other versions is still there: {sorted(image.traces)}")


def simulate_changes(seed: int, steps: int = 60) -> tuple[World, int]:
    """Raises `Broken` where the contract is not kept; says how often a program took over."""
    history = ChangingHistory(seed)
    history.run(steps)
    return history.world, history.takeovers
