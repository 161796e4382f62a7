"""Changing the number of shards, between two epochs.

A record says from which epoch on the hash space is cut otherwise; that is all. No layer is rewritten, and no epoch waits: those before have
been computed by the old shards, the next one reads slices of what they left. Merges write layers of the new ones over time.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Literal

from nosync.journal.entries import Rescaled
from nosync.journal.journal import Journal
from nosync.model.errors import Conflict, Invalid
from nosync.model.identifiers import Epoch
from nosync.model.scaling import FIXED, FOLLOW, WINDOW, Load, Scaling
from nosync.model.shards import POSSIBLE_SHARDS
from nosync.spark.engine import SparkEngine


def check_shards(shards: int) -> None:
    if isinstance(shards, bool) or not isinstance(shards, int) or shards not in POSSIBLE_SHARDS:
        raise Invalid(f"shards={shards!r} is not possible", hint=f"Pass a number from 1 to {POSSIBLE_SHARDS[-1]:,}.")


def scaling_of(shards: int | Literal["auto"] | None) -> tuple[Scaling, int | None]:
    """Reads what `flow.start` was given: a rule, and a number to begin with."""
    if shards == "auto":
        return FOLLOW, None
    if shards is not None:
        check_shards(shards)
    return FIXED, shards


def rescale(journal: Journal, shards: int, at: float) -> Epoch:
    """Records that the next epoch has so many shards, and all after it; gives that epoch."""
    epoch = journal.image.epoch + 1
    journal.append(Rescaled(epoch, shards, at))
    return epoch


class Rescaling:
    """The shards of a run. `boundary` is held while an epoch is computed."""

    def __init__(self, journal: Journal, engine: SparkEngine, scaling: Scaling, clock: Callable[[], float]) -> None:
        self.journal, self.engine, self.scaling, self.clock = journal, engine, scaling, clock
        self.boundary = threading.Lock()
        self.held = ""  # why there may be no other shards now
        self._asked: int | None = None
        self._rows: deque[int] = deque(maxlen=WINDOW)

    @property
    def shards(self) -> int:
        return self.engine.context.shards

    def ask(self, shards: int) -> Epoch:
        """Rescales before the next epoch, whoever comes first: the caller, once the epoch under way is done, or the stream."""
        if self.held:
            raise Conflict(f"other shards have to wait: {self.held}", hint="Call run.rescale again once run.takeover has come back.")
        self._asked = shards
        with self.boundary:
            self.carry_out()
            return Epoch(self.journal.image.epoch + 1)

    def carry_out(self) -> None:
        """Does what was asked for. Called between epochs, by whoever holds the boundary."""
        if self.held:
            return
        shards, self._asked = self._asked, None
        if shards is not None and shards != self.shards:
            rescale(self.journal, shards, self.clock())
            self.engine.rescale(shards)
            self._rows.clear()

    def follow(self, rows: int) -> None:
        """After an epoch of so many rows: asks for other shards where the rule says so."""
        self._rows.append(rows)
        if len(self._rows) < WINDOW or self.journal.image.epoch % WINDOW:
            return
        load = Load(self.engine.cores, tuple(self._rows), sum(layer.bytes for layer in self.journal.image.newest_layers()))
        self._asked = self._asked or self.scaling.shards(self.shards, load)
