"""Which epochs survive a failure, and what may be released. Pure: no I/O, no clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber

Failure = Literal["process", "executor", "host", "site"]
Release = Literal["computed", "safe"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a tier stands still. It goes away by itself once the cause does."""

    message: str
    since: float


@dataclass(frozen=True, slots=True)
class Standing:
    """What is on a tier: records up to `number`, and all that epochs up to `epoch` can be brought back from; `behind` are bytes on their
    way to it.
    """

    survives: Failure
    number: RecordNumber
    epoch: Epoch
    behind: int
    objects: int
    bytes: int
    problem: Problem | None = None

    @staticmethod
    def from_json(facts: dict[str, Any]) -> "Standing":
        problem = facts["problem"]
        return Standing(**facts | {"problem": Problem(**problem) if problem else None})


def safe_points(computed: Epoch, tiers: Iterable[Standing]) -> dict[str, Epoch]:
    """By kind of failure, the newest epoch that survives it. A worse failure never has a newer one. Where executors keep layers, they end
    with the driver's process: that is no better than losing one of them.
    """
    points: dict[str, Epoch] = {"process": computed}
    newest = computed
    for tier in tiers:
        newest = min(newest, tier.epoch)
        points[tier.survives] = newest
        if tier.survives == "executor":
            points["process"] = newest
    return points


def releasable(release: Release, computed: Epoch, opened_by: Callable[[RecordNumber], Epoch], tiers: Iterable[Standing]) -> Epoch:
    """The newest epoch that a sink may have. `opened_by` says up to which one all was opened in the records up to some number."""
    known = list(tiers)
    if release == "safe":
        return min([computed, *(tier.epoch for tier in known)])
    return min(computed, opened_by(min((tier.number for tier in known), default=NO_RECORD)))
