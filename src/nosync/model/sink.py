"""Where output goes, and what it promises."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from nosync.model.identifiers import Epoch

Guarantee = Literal["precise", "repeating", "convergent", "divergent", "gap"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What a sink's output promises after a failure, and the weakest link that decides it."""

    guarantee: Guarantee
    reason: str


class Outlet(Protocol):
    """Takes the output of a sink, one epoch after the other."""

    def precise(self, sink: str) -> bool:
        """Whether the sink makes nothing of an epoch that it had before."""

    def deliver(self, sink: str, epoch: Epoch) -> None:
        """All of an epoch's output. `Unavailable` means: try this epoch again later."""


class Target(Protocol):
    """What a user passes to `flow.sink`. `changes` is what the epoch's output can be read from."""

    @property
    def promise(self) -> Promise: ...

    def start(self, flow: str, sink: str) -> None:
        """Called when a run starts: checks that the target can be written."""

    def deliver(self, epoch: Epoch, changes: Any) -> None: ...
