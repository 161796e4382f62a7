"""Giving up on two tiers: what could be read on the second one stays readable there, however it was shipped."""

from pathlib import Path

import numpy as np
import pytest

from nosync.journal.entries import GivenUp
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.state.cover import cover, is_complete
from nosync.state.folding import chain_of, needed
from nosync.tiers.choosing import collapsing, uncovered
from tests.state.test_folding import TRACE, History


class Shipped(History):
    """`placed` are the layers that the second tier has."""

    def __init__(self, home: Path, kind: str, seed: int) -> None:
        super().__init__(home, kind, seed)
        self.placed: set[str] = set()
        self.chance = np.random.default_rng(seed + 1000)
        self.given_up = 0

    @property
    def layers(self) -> list[LayerInfo]:
        return list(self.image.traces.get(TRACE, {}).get(ALL_HASHES, []))

    @property
    def there(self) -> list[LayerInfo]:
        return [layer for layer in self.layers if layer.path in self.placed]

    def readable(self) -> set[int]:
        """The kept epochs that the second tier can answer for."""
        kept = [epoch for epoch in range(1, self.image.epoch + 1) if epoch in self.image.kept]
        return {at for at in kept if is_complete(cover(self.there, Epoch(at), self.image.kept), self.layers, at)}

    def ship(self, last: int) -> None:
        """A leaf layer, or what stands for several; else something of the past."""
        waiting = uncovered(self.layers, self.placed)
        if waiting and self.chance.random() < 0.7:
            chosen = collapsing(waiting, self.layers, self.placed) if self.chance.random() < 0.7 else waiting[0]
            self.placed.add(chosen.path)
            return
        chain = chain_of(self.layers, self.image.kept, Epoch(last))
        wanted = [*([chain.base] if chain.base else []), *chain.versioned, *chain.steps]
        self.placed |= {layer.path for layer in wanted if layer.path not in self.placed and self.chance.random() < 0.5}

    def give_up(self, last: int) -> None:
        safe = min([last, self.image.epoch, *(leaf.lower - 1 for leaf in uncovered(self.layers, self.placed))])
        stay = {layer.path for layer in self.image.newest_layers()}
        for tier in (None, self.there):
            stay |= needed(self.layers, self.image.kept, Epoch(safe), there=tier)
        gone, before = tuple(layer.path for layer in self.layers if layer.path not in stay), self.readable()
        self.apply(GivenUp(gone))
        self.given_up += len(gone)
        assert before <= self.readable(), f"epochs {sorted(before - self.readable())} were lost with {gone}"
        for path in gone:
            (self.home / path).unlink()


@pytest.mark.parametrize("seed", range(8))
def test_what_was_readable_on_a_tier_stays_so(tmp_path: Path, seed: int) -> None:
    history, last = Shipped(tmp_path, "upserts", seed), 0
    for _ in range(50):
        history.epoch()
        last = int(history.chance.integers(last, history.image.epoch + 1))
        if seed and history.chance.random() < 0.1:
            history.thin(last)
        history.ship(last)
        history.work(last)
    assert history.given_up > 10
