"""Two more ways of protecting state, as small as they can be written: nothing but a class each."""

from collections.abc import Sequence
from dataclasses import replace

from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.policies.log_structured import LogStructured
from nosync.model.policy import OnLoss, OpenedBy, Tier
from nosync.model.retention import Hold
from nosync.model.safety import Release, Standing
from nosync.model.sink import Promise


class Gap:
    """Nothing is persisted and nothing waits: what a failure takes is gone, and the flow goes on without it."""

    name = "gap"

    def tiers(self, remote: bool) -> tuple[Tier, ...]:
        return ()

    def waits_for(self, tiers: Sequence[Standing]) -> Standing | None:
        return None

    def safe_points(self, computed: Epoch, tiers: Sequence[Standing]) -> dict[str, Epoch]:
        return {"process": computed}

    def releasable(self, release: Release, computed: Epoch, opened_by: OpenedBy, tiers: Sequence[Standing]) -> Epoch:
        return computed

    def input_holds(self, tiers: Sequence[Standing]) -> list[Hold]:
        return []

    def on_loss(self, repeatable: bool) -> OnLoss:
        return "forget"

    def floor(self, released: Epoch) -> Epoch:
        return NO_EPOCH

    def promise(self, target: Promise, release: Release, unrepeatable: Sequence[str]) -> Promise:
        return Promise("gap", "what a failure takes is gone", target.fencing)


class UpstreamBackup(LogStructured):
    """Input alone is persisted, and kept: the state is computed again from the beginning."""

    name = "upstream backup"  # type: ignore[assignment]

    def tiers(self, remote: bool) -> tuple[Tier, ...]:
        return tuple(replace(tier, layers=False) for tier in super().tiers(remote))

    def input_holds(self, tiers: Sequence[Standing]) -> list[Hold]:
        return [Hold("the state is computed from it", 1)]


GAP, UPSTREAM_BACKUP = Gap(), UpstreamBackup()
