"""Histories in which the number of shards changes: with a start, before a recovery, and between epochs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

from nosync.duties.compacting import Compactor
from nosync.journal import image
from nosync.journal.entries import Rescaled
from nosync.journal.journal import Journal
from nosync.model.hash_range import HashRange
from nosync.model.layers import Covers, LayerInfo
from nosync.model.shards import shard_ranges
from nosync.state import cover, spine

from . import life
from .history import History
from .life import Life
from .program import HALVES, SHARDED, DictEngine
from .world import World

COUNTS = (1, 2, 3, 4)
MOST = 20  # or the flow would never come to rest


class RescalingLife(Life):
    """A run whose shards are other ones from time to time."""

    history: RescalingHistory

    def make_engine(self, journal: Journal) -> DictEngine:
        engine = super().make_engine(journal)
        engine.shards = self.history.chance.choice(COUNTS)
        return engine

    def stream(self) -> bool:
        assert self.journal is not None
        if self.history.rescaled < MOST and self.history.chance.random() < 0.2:
            shards = self.history.chance.choice(COUNTS)
            self.journal.append(Rescaled(self.journal.image.epoch + 1, shards, 0.0))
            self.engine.shards = shards
            self.history.rescaled += 1
        return super().stream()

    def ranges_of(self, trace: str, covers: Covers) -> Iterable[HashRange]:
        return shard_ranges(self.engine.shards) if trace in SHARDED else HALVES


class RescalingHistory(History):
    """Chance of its own: the rest is as in the history of the same seed."""

    kind = RescalingLife

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chance, self.rescaled = random.Random(seed), 0


def simulate_rescaling(seed: int, steps: int = 60) -> tuple[World, int]:
    """Raises `Broken` where the contract is not kept; says how often the flow was rescaled."""
    history = RescalingHistory(seed)
    history.run(steps)
    return history.world, history.rescaled


MUTATIONS: dict[str, tuple[Callable[[], Any], int]] = {
    "covers are put together as if ranges did not overlap": (lambda: patch.object(cover, "pieces", dict), 0),
    "a new layer takes the place of others in its own range only": (lambda: patch.object(image, "with_layers", _beside), 0),
    "neighbouring merges take whole layers": (lambda: patch.object(spine, "layer_ranges", _whole), 1),
    "a layer goes as soon as one piece can do without": (lambda: patch.object(Compactor, "_without_use", _anywhere), 1),
    "what is merged may reach beyond what was written": (lambda: patch.object(life, "merges_of", _as_one), 10),
}


def _beside(covers: Covers, layers: Iterable[LayerInfo]) -> Covers:
    for layer in layers:
        covers = covers | {layer.range: cover._placed(covers.get(layer.range, ()), layer)}
    return covers


def _whole(covers: Covers, wanted: HashRange) -> Any:
    return tuple((layer, layer.range) for layer, _ in cover.layer_ranges(covers, wanted))


WITHOUT_USE = Compactor._without_use


def _anywhere(self: Any, image: Any) -> Any:
    gone, parts = WITHOUT_USE(self, image)
    return [*gone, *parts], {}


def _as_one(chosen: Any) -> Any:
    found = [one for level in chosen for one in level.ranges]
    return [(HashRange(min(part.lower for _, part in found), max(part.upper for _, part in found)), found)]
