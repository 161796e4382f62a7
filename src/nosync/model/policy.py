"""How state is protected: what is persisted where and when, what a recovery may assume, what a sink may promise.

A policy is a pure value, chosen once when a flow starts, and declared by name in the journal: whoever comes later, a recovery or a reader,
goes by what the run before was protected by. Those who act ask it, and nobody asks for its name:

* `duties.upkeep` for the tiers of the run, and so for the duties that fill them and for how far each is;
* the loop for whether the stream must wait;
* releasing for what a sink may have, trimming for what input must stay;
* the plan of a recovery for what becomes of lost state, and how far back it may go;
* `guarantees` for what a sink's output promises.

Another way of protecting state is a file in `policies` and a line in `policies.table`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from nosync.model.identifiers import Epoch, RecordNumber
from nosync.model.retention import Hold
from nosync.model.safety import Release, Standing
from nosync.model.sink import Promise

OnLoss = Literal["recompute", "refuse", "forget"]
MOST_LAYERS, PATIENCE_SECONDS = 64, 3.0
OpenedBy = Callable[[RecordNumber], Epoch]


@dataclass(frozen=True, slots=True)
class Tier:
    """A place that survives the loss of a host, or of a site, and what is brought there behind the stream: the journal's records with
    the input that nobody else has, and, with `layers`, the state. Without, an epoch is safe there once its opening is.

    To a site, layers that follow each other closely go merged after `patience_seconds`; so that a recovery need not fetch more than
    `most_layers`, or is done within `recover_within` seconds, shorter ones follow.
    """

    survives: Literal["host", "site"]
    layers: bool = True
    most_layers: int = MOST_LAYERS
    patience_seconds: float = PATIENCE_SECONDS
    recover_within: float | None = None


class Policy(Protocol):
    """See the module."""

    @property
    def name(self) -> str:
        """As the journal has it."""

    def tiers(self, remote: bool) -> tuple[Tier, ...]:
        """Where state goes, from the nearest to the farthest."""

    def waits_for(self, tiers: Sequence[Standing]) -> Standing | None:
        """The tier that the stream has to wait for now, if any."""

    def safe_points(self, computed: Epoch, tiers: Sequence[Standing]) -> dict[str, Epoch]:
        """By kind of failure, the newest epoch that survives it. A worse failure never has a newer one."""

    def releasable(self, release: Release, computed: Epoch, opened_by: OpenedBy, tiers: Sequence[Standing]) -> Epoch:
        """The newest epoch that a sink may have. `opened_by` says up to which one all was opened in the records up to some number."""

    def input_holds(self, tiers: Sequence[Standing]) -> list[Hold]:
        """Epochs whose input a recovery may ask for."""

    def on_loss(self, repeatable: bool) -> OnLoss:
        """What becomes of lost state that can be computed again, or cannot: it is recomputed, or the recovery refuses to go on without
        it, or it is forgotten."""

    def floor(self, released: Epoch) -> Epoch:
        """The epoch whose input a recovery must still have, where sinks have epochs up to `released`."""

    def promise(self, target: Promise, release: Release, unrepeatable: Sequence[str]) -> Promise:
        """What a sink's output promises after a failure: `target` is what the sink itself does, `unrepeatable` are operators above it."""
