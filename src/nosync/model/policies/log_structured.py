"""Log-structured, asynchronous: every epoch's records and layers go to every tier, behind the stream; what no tier has is recomputed from
input. The stream waits only where too much is on its way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nosync.model.identifiers import Epoch
from nosync.model.policy import MOST_LAYERS, PATIENCE_SECONDS, OnLoss, OpenedBy, Tier
from nosync.model.retention import Hold, recovery_holds
from nosync.model.safety import Release, Standing, releasable, safe_points
from nosync.model.sink import Promise


@dataclass(frozen=True, slots=True)
class LogStructured:
    """`most_unshipped_bytes`: when the stream waits. The others as in `Tier`."""

    most_unshipped_bytes: int = 1 << 30
    recover_within: float | None = None
    most_layers: int = MOST_LAYERS
    patience_seconds: float = PATIENCE_SECONDS

    @property
    def name(self) -> str:
        return "log-structured"

    def tiers(self, remote: bool) -> tuple[Tier, ...]:
        site = Tier("site", True, self.most_layers, self.patience_seconds, self.recover_within)
        return (Tier("host"), site) if remote else (Tier("host"),)

    def waits_for(self, tiers: Sequence[Standing]) -> Standing | None:
        return next((tier for tier in tiers if tier.behind > self.most_unshipped_bytes), None)

    def safe_points(self, computed: Epoch, tiers: Sequence[Standing]) -> dict[str, Epoch]:
        return safe_points(computed, tiers)

    def releasable(self, release: Release, computed: Epoch, opened_by: OpenedBy, tiers: Sequence[Standing]) -> Epoch:
        """At "computed" once its opening is on every tier: then a recovery computes the same."""
        return releasable(release, computed, opened_by, tiers)

    def input_holds(self, tiers: Sequence[Standing]) -> list[Hold]:
        return recovery_holds(tiers)

    def on_loss(self, repeatable: bool) -> OnLoss:
        return "recompute" if repeatable else "refuse"

    def floor(self, released: Epoch) -> Epoch:
        return released

    def promise(self, target: Promise, release: Release, unrepeatable: Sequence[str]) -> Promise:
        if not unrepeatable or release == "safe":
            return target
        lost = "an epoch that is released, then lost with the host, comes out anew"
        return Promise("divergent", f'"{unrepeatable[0]}" is not deterministic: {lost}; "safe" would wait', target.fencing)


LOG_STRUCTURED = LogStructured()
