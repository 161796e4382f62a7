"""The epoch path: open, compute, record. The run's loop calls `step` again and again; nothing here waits for an fsync or the network.

An epoch is opened by recording the slice of every source, computed by the engine, and whole once its entry is in the journal. The next one
is opened while an epoch computes (`open_ahead`), so that its record is on every tier by the time it matters. A failure at any point leaves
the state at the epoch before; the opened epoch is repeated as recorded.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from nosync.journal.entries import Computed, Opened
from nosync.journal.journal import Journal
from nosync.model.engine import Engine, Outcome
from nosync.model.errors import Unavailable, Unreadable
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.slices import as_recorded
from nosync.model.source import Slice
from nosync.model.watermark import newest

Clock = Callable[[], float]
LOOKS = 50  # how often input is recorded anew before others may have a turn


class Openable(Protocol):
    """The part of a source that opening needs."""

    @property
    def available(self) -> Callable[[], Slice | None]: ...
    @property
    def files(self) -> Callable[[Slice], dict[str, str]]: ...
    @property
    def acknowledge(self) -> Callable[[Slice], None]: ...
    @property
    def reopen(self) -> Callable[[Slice, Mapping[str, str]], Slice]: ...


@dataclass(frozen=True, slots=True)
class Step:
    """An epoch that was computed, and how long its parts took."""

    opened: Opened
    outcome: Outcome
    millis: dict[str, int]


class Epochs:
    """A flow on its journal. `always_first`: the first epoch has something to do even without input.

    `closings`: how many epochs without input may follow one that moved event time on, to release what it closed. `reproducible` says up to
    which epoch all input survives every failure that the flow is protected from; without it, what is recorded does.
    """

    def __init__(
        self,
        journal: Journal,
        sources: Mapping[str, Openable],
        engine: Engine,
        clock: Clock,
        always_first: bool = False,
        closings: int = 0,
        reproducible: Callable[[], Epoch] | None = None,
    ) -> None:
        self.journal, self.sources, self.engine, self.clock = journal, sources, engine, clock
        self.always_first, self.closings = always_first, closings
        self.reproducible = reproducible or (lambda: self.journal.image.last_opened)
        self.opening = threading.Lock()  # held by whoever opens an epoch, or must not come upon a new one
        self._taken: dict[str, Slice] = {}  # handed out by sources, not recorded yet
        self._unacknowledged: list[Opened] = []  # sources have yet to hear that these are recorded

    def step(self, around: AbstractContextManager[object] | None = None) -> Step | None:
        """One epoch if there is input (or one that was opened before), computed and recorded within `around`; None when there is nothing
        to do.
        """
        times = [time.perf_counter()]
        self.journal.resolve()
        opened = self.journal.image.unfinished() or self._open(self.journal.image.epoch + 1)
        if opened is None:
            return None
        times.append(time.perf_counter())
        image = self.journal.image
        with around or nullcontext():
            opened, outcome = self._computed(opened)
            times.append(time.perf_counter())
            seen = newest(image.seen_before(opened.epoch), outcome.seen)
            self.journal.append(Computed(opened.epoch, outcome.layers, outcome.rows, outcome.rejected, seen))
        times.append(time.perf_counter())
        parts = zip(("open", "compute", "seal"), pairwise(times), strict=True)
        return Step(opened, outcome, {name: round((end - start) * 1e3) for name, (start, end) in parts})

    def _computed(self, opened: Opened) -> tuple[Opened, Outcome]:
        """The epoch's outcome. Input that turns out to be not as it was recorded is recorded anew: nobody has seen anything of it yet."""
        image, epoch = self.journal.image, opened.epoch
        for _ in range(LOOKS):
            outcome, failure = None, None
            try:
                outcome = self.engine.compute([opened], lambda trace: image.covers(trace, epoch - 1), seen=image.seen_before)
            except Unreadable as error:
                failure = error
            unreadable = failure.files if failure else {}
            found = {name: self._reopened(name, slice, unreadable) for name, slice in opened.slices.items()}
            if found == opened.slices:
                if outcome is None:
                    raise failure or AssertionError
                return opened, outcome
            opened = replace(opened, slices=found)
            self.journal.append(opened)
        raise Unavailable(f"the input of epoch {epoch} keeps changing", hint="Move files in whole, or pass minFileAge=: it is tried again.")

    def _reopened(self, name: str, slice: Slice, unreadable: Mapping[str, str]) -> Slice:
        found = self.sources[name].reopen(slice, unreadable)
        return slice if found == slice else as_recorded(name, found)

    def open_ahead(self) -> Opened | None:
        """Opens the epoch after the one that computes now, if there is input. Called from another thread meanwhile."""
        with self.journal.lock:
            computing = self.journal.image.epoch + 1
            wanted = computing in self.journal.image.opened and computing + 1 not in self.journal.image.opened
        opened = self._open(computing + 1) if wanted else None
        if opened is not None:
            self.engine.prepare(opened)
        return opened

    def _open(self, epoch: Epoch) -> Opened | None:
        with self.opening:
            self.journal.resolve()
            self._acknowledge()
            if epoch in self.journal.image.opened:
                return self.journal.image.opened[epoch]
            for name, source in self.sources.items():
                if name not in self._taken and (slice := source.available()) is not None:
                    self._taken[name] = slice
            if not self._taken and not (epoch == 1 and self.always_first) and not self._closes(epoch):
                return None
            slices = {name: as_recorded(name, slice) for name, slice in self._taken.items()}  # what is refused stays taken, and is so again
            files = {file: digest for name, slice in slices.items() for file, digest in self.sources[name].files(slice).items()}
            opened, self._taken = Opened(epoch, self.clock(), slices, files), {}
            self._unacknowledged.append(opened)
            self.journal.append(opened)  # if this fails the record stays next in line
            self._acknowledge()
            return opened

    def acknowledge(self) -> None:
        """Nobody depends any more on the sources to keep what is on every tier: no failure takes it back."""
        with self.opening:
            self._acknowledge()

    def _acknowledge(self) -> None:
        lasting = min(self.reproducible(), self.journal.image.last_opened) if self._unacknowledged else NO_EPOCH
        while self._unacknowledged and self._unacknowledged[0].epoch <= lasting:
            for name, slice in self._unacknowledged[0].slices.items():
                self.sources[name].acknowledge(slice)
            self._unacknowledged.pop(0)

    def _closes(self, epoch: Epoch) -> bool:
        """Whether event time has moved on and nobody has seen to what that closes. Known once all epochs before are computed."""
        image = self.journal.image
        times = [image.seen_before(epoch - lag) for lag in range(self.closings + 1)]
        return epoch == image.epoch + 1 and any(later != earlier for later, earlier in pairwise(times))
