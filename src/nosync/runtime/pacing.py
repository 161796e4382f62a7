"""Lets a run's epochs be as rare as the latency allows that the user asked for (`trigger={"latency": ...}`), and as large as can be seen
in time. The decision is `model.pacing`'s; this measures for it, and tells the sources.
"""

import time
from collections.abc import Callable, Mapping

from nosync.model.bound import BoundSource
from nosync.model.pacing import Pacer
from nosync.model.source import Slice

NEARLY = 0.9  # of what it may bring: a source that brings so much has more


class Pacing:
    """Of one run. `interval`: seconds from the beginning of one epoch to that of the next; `latency`: after which rows of the last epoch
    were seen, at most, if nothing waited before.
    """

    def __init__(self, aim: float, sources: Mapping[str, BoundSource], clock: Callable[[], float] = time.monotonic) -> None:
        self.pacer, self.sources, self.clock = Pacer(aim), sources, clock
        self.interval = 0.0
        self.shares: dict[str, float] = {}
        self.allowed: dict[str, int] = {}

    def begin(self) -> None:
        """Before an epoch is opened: sources that can are told how much they may bring, each by what it brought of late."""
        self.began = self.clock()
        weight = self.pacer.next(self.began).weight
        sparing = {name: source.allow for name, source in self.sources.items() if source.allow is not None}
        for name, allow in sparing.items():
            if weight is not None:
                share = max(self.shares.get(name, 1.0), 1 / (2 * len(sparing)))
                self.allowed[name] = max(1, round(share * weight))
            allow(self.allowed.get(name))

    def done(self, slices: Mapping[str, Slice]) -> None:
        """An epoch with these slices was computed."""
        weights = {name: self.sources[name].weight(slice) for name, slice in slices.items()}
        total = sum(weights.values())
        more = any(weights.get(name, 0) >= NEARLY * most for name, most in self.allowed.items())
        self.pacer.note(total, self.began, self.clock() - self.began, more)
        self.shares = {name: weight / total for name, weight in weights.items()} if total else {}
        self.interval = self.pacer.next(self.clock()).interval
