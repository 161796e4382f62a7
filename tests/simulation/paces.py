"""Histories in which sinks get several epochs as one, or each by itself, as each start decides anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from nosync.duties.release import Intent, Releaser
from nosync.model.sink import Terms

from .history import History
from .life import Life
from .program import Sink
from .world import World


class PacedLife(Life):
    """A run whose sinks have terms of its own."""

    history: PacedHistory

    def terms(self, sink: Sink) -> Terms:
        return Terms(sink.release, together=self.history.chance.random() < 0.8)

    def deliver(self, sink: str, first: int, last: int) -> None:
        super().deliver(sink, first, last)
        self.history.together += first < last


class PacedHistory(History):
    """Chance of its own: the rest is as in the history of the same seed."""

    kind = PacedLife

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chance, self.together = random.Random(seed), 0


def simulate_paces(seed: int, steps: int = 60) -> tuple[World, int]:
    """Raises `Broken` where the contract is not kept; says how often several epochs were delivered as one."""
    history = PacedHistory(seed)
    history.run(steps)
    return history.world, history.together


def _forgotten(self: Releaser, sink: str) -> Intent:
    return Intent()


def _on_the_remote(self: Releaser, intent: Intent) -> bool:
    return all(tier.number >= intent.number for tier in self.standings() if tier.survives == "site")


def _at_once(self: Releaser, sink: str, done: int, plain: Callable[..., bool] = Releaser._intend) -> bool:
    self.found = 0
    return plain(self, sink, done)


MUTATIONS: dict[str, tuple[Callable[[], Any], int]] = {
    "what an earlier run meant to deliver as one is forgotten": (lambda: patch.object(Releaser, "_left_over", _forgotten), 37),
    "an intent for several epochs need not be synced": (lambda: patch.object(Releaser, "_is_recorded", _on_the_remote), 106),
    "what a run finds undelivered goes as one": (lambda: patch.object(Releaser, "_intend", _at_once), 6),
}
