"""The state of what is new in a program, made from recorded input: as far as some epoch, and from there further on with each call.

Rebuilding goes the way of recovery: many epochs as one job that writes the traces wanted and no other (epoch by epoch where that matters).
The layers are nobody's until a record names them (see `takeover`).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from nosync.history.view_covers import Past
from nosync.journal.entries import Declared, Opened
from nosync.journal.image import RECENT, Image
from nosync.journal.journal import Journal
from nosync.journal.past import TieredReader, openings
from nosync.model.engine import CoversOf, Engine, Targets
from nosync.model.errors import Corrupt
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, TraceName
from nosync.model.layers import Covers, LayerInfo
from nosync.model.status import Recovery
from nosync.model.store import Disk, Remote
from nosync.model.watermark import newest
from nosync.recovery.restore import Report
from nosync.runtime.change import Difference, base
from nosync.runtime.derived_views import DerivedView, layers_of
from nosync.runtime.job_progress import Watched, reporting
from nosync.spark.rewriting import Rewriting
from nosync.state.cover import cover


@dataclass(frozen=True)
class ProgramChange:
    """A program that is to take over. `targets` are the traces and shards without state, `upstream` those and all they are computed from;
    `sources` feed them, `sinks` are those without a past. `doubts` say why operators cannot begin empty, `recorded` ones of `upstream`
    cannot be computed again, `bare` ones without the input from before the flow's state was imported. `derived` are views that can be
    computed from the rows that they had.
    """

    declaration: Declared
    difference: Difference
    targets: Targets
    upstream: Targets
    sources: frozenset[str]
    sinks: tuple[str, ...]
    stepwise: bool
    doubts: Mapping[str, str]
    recorded: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    derived: Mapping[TraceName, DerivedView] = field(default_factory=dict)

    @property
    def only_adds(self) -> bool:
        """Whether all that was there stays, and what is new are views: those may come while the rest goes on."""
        found = self.difference
        return bool(self.targets) and not (self.sinks or found.changed or found.gone or found.tables or self.derived)

    def rewritten(self, image: Image) -> dict[TraceName, DerivedView]:
        """The views whose rows are rewritten. What is computed epoch by epoch has its past by that; what began empty has not all rows."""
        empty = {trace for trace, begun in image.begun.items() if begun.empty}
        whole = not self.stepwise or not self.targets.keys() - self.derived.keys()
        return {trace: one for trace, one in self.derived.items() if whole and one.before.trace not in empty}

    def loses_nothing(self, image: Image) -> bool:
        """Whether all that there is of the change are views with more columns, computed from those that they had."""
        rewritten, found = self.rewritten(image), self.difference
        traces = {one.before.trace for one in rewritten.values()}
        return (
            bool(rewritten) and rewritten.keys() == {*found.fresh} and {*found.gone} <= traces and not (found.tables or self.sinks)
            and all(one.whole for one in rewritten.values())
        )  # fmt: skip


class Rewriter(Protocol):
    """What rewrites the rows of views."""

    def rewrite(self, asked: Rewriting) -> Sequence[LayerInfo]: ...


@dataclass
class Rebuild:
    """Of one change. All epochs up to `epoch` are in `made`. Nothing that it reads may be given up until it is recorded."""

    change: ProgramChange
    journal: Journal
    disk: Disk
    remote: Remote | None
    engine: Engine
    report: Report
    watched: Watched | None = None
    rewriter: Rewriter | None = None
    epoch: Epoch = NO_EPOCH
    made: list[LayerInfo] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before = Image()  # the others, as of that epoch
        self._seen: dict[Epoch, dict[str, int]] = {NO_EPOCH: {}}  # after each epoch
        self._names = ", ".join(base(name) for name in self.change.difference.fresh)
        self.rewritten = self.change.rewritten(self.journal.image) if self.rewriter is not None else {}
        self._computed = {trace: ranges for trace, ranges in self.change.targets.items() if trace not in self.rewritten}

    @property
    def layers(self) -> tuple[LayerInfo, ...]:
        """Of the traces that the change asks for."""
        return tuple(layer for layer in self.made if layer.trace in self.change.targets)

    @property
    def times(self) -> list[tuple[Epoch, dict[str, int]]]:
        """The event times of the last epochs."""
        return [(number, found) for number, found in self._seen.items() if found][-RECENT:]

    def go_on(self) -> None:
        """As far as the newest computed epoch."""
        image, rolled = self.journal.snapshot()
        if image.epoch == self.epoch:
            return
        records = self.journal.after(rolled)
        every = openings(TieredReader(self.disk, self.remote), rolled, records)
        known = [entry for entry in every if self.epoch < entry.epoch <= image.epoch]
        self._report(self._words(image.epoch))
        with self._watching(image.epoch):
            self.made += [layer for view in self.rewritten.values() for layer in self._rewrite(view, image, rolled)]
        if self._computed:
            self._fetch(known)
        if self._computed and self.change.stepwise:
            self._epoch_by_epoch(known)
        elif self._computed:
            with self._watching(image.epoch):
                self.made += self.engine.compute(known, self._covers, self._computed).layers
        self.epoch, self._before = image.epoch, image

    def _epoch_by_epoch(self, known: Sequence[Opened]) -> None:
        """Beginning anew after a failure, it goes on with the epoch that failed."""
        for entry in (entry for entry in known if entry.epoch not in self._seen):
            self._report(self._words(known[-1].epoch, entry.epoch), entry.epoch - known[0].epoch, len(known))
            before = _as_of(self.made, entry.epoch - 1)
            outcome = self.engine.compute([entry], before, self.change.upstream, lambda epoch: self._seen.get(epoch - 1, {}))
            self.made += outcome.layers
            self._seen[entry.epoch] = newest(self._seen[entry.epoch - 1], outcome.seen)

    def _rewrite(self, view: DerivedView, image: Image, rolled: RecordNumber) -> Sequence[LayerInfo]:
        """The rows of a view as of each epoch, of those that it had."""
        assert self.rewriter is not None
        asked = view.rewriting(image, Past(self.disk, self.remote, rolled))
        for layer in layers_of(asked):
            if self.remote is not None and not layer.place and not self.disk.exists(layer.path):
                self.remote.download(layer.path, self.disk)
        return self.rewriter.rewrite(asked)

    def _covers(self, trace: TraceName) -> Covers:
        """As of `epoch`: of what was made so far, and of what the home has of the others."""
        if trace in self.change.targets or not self.epoch:
            return _as_of(self.made, self.epoch)(trace)
        return self._before.covers(trace, self.epoch)

    def _words(self, last: Epoch, now: Epoch | None = None) -> str:
        if now is not None:
            return f"rebuilding {self._names}, epoch {now} of {last}"
        return f"rebuilding {self._names} from epochs {self.epoch + 1} to {last}"

    def _report(self, what: str, done: int = 0, tasks: int = 0) -> None:
        self.report(Recovery(what, shards=sum(map(len, self.change.targets.values())), tasks_done=done, tasks=tasks))

    def _watching(self, last: Epoch) -> AbstractContextManager[None]:
        """One job for all epochs may take long: it says how far it is, and is given up when the run shall stop."""
        words = self._words(last)
        return reporting(self.watched, partial(self._report, words)) if self.watched is not None else nullcontext()

    def _fetch(self, entries: Sequence[Opened]) -> None:
        """Input of ours that a lost disk took along."""
        for name in (name for entry in entries for name in entry.files):
            if not self.disk.exists(name) and (self.remote is None or not self.remote.download(name, self.disk)):
                raise Corrupt(f'input "{name}" is gone', hint='Pass on_change="discard", or put it back.')


def _as_of(made: Sequence[LayerInfo], epoch: Epoch) -> CoversOf:
    """Covers from what was made so far."""
    made_in: dict[TraceName, dict[HashRange, list[LayerInfo]]] = {}
    for layer in made:
        made_in.setdefault(layer.trace, {}).setdefault(layer.range, []).append(layer)
    return lambda trace: {held: cover(layers, epoch) for held, layers in made_in.get(trace, {}).items()}
