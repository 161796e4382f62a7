"""How a flow stands: one value, whether the run itself is asked or somebody who only sees its home. Pure.

    HOME/status   one JSON object, replaced whole: what only the run knows of itself (`Live`). It is news, not history: the journal never
                  speaks of it, and losing it loses nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from nosync.model.errors import MALFORMED
from nosync.model.estimate import Effort, Estimate, Pace
from nosync.model.footprint import Footprint
from nosync.model.identifiers import Epoch
from nosync.model.lease import Standby
from nosync.model.safety import Standing
from nosync.model.sizes import size_of
from nosync.model.text import json_of

Phase = Literal["starting", "recovering", "running", "stopping", "stopped", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Recovery:
    """How far coming back is: `what` is being done, how many of the shards to restore are whole, and how many of their bytes are there.
    A shard of each trace counts for itself. What is rebuilt counts tasks of Spark's, or epochs where those are taken one by one.
    """

    what: str
    shards_done: int = 0
    shards: int = 0
    bytes_done: int = 0
    bytes: int = 0
    tasks_done: int = 0
    tasks: int = 0

    @property
    def part(self) -> float:
        """From 0 to 1."""
        if self.tasks:
            return self.tasks_done / self.tasks
        return self.bytes_done / self.bytes if self.bytes else self.shards_done / self.shards if self.shards else 0.0

    def __str__(self) -> str:
        figures = [f"{self.shards_done:,} of {self.shards:,} shards"] if self.shards else []
        figures += [f"{self.part:.0%}"] if self.tasks else []
        figures += [size_of(self.bytes_done, self.bytes)] if self.bytes else []
        return f"{', '.join(figures)} ({self.what})" if figures else self.what


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong behind the stream, by duty: `count` errors since the run began, the last one's `message`, and when it came.
    `since` is the time of the first in a row; None where the duty has worked again after.
    """

    duty: str
    count: int
    message: str
    at: float
    since: float | None


@dataclass(frozen=True, slots=True)
class Live:
    """What a run knows of itself. `tiers` count what this run brought there; `sinks` have epochs up to the one given, and those with a
    pace of their own are served at the times of `next_at`. `estimate` is what a recovery from the remote would take; `standbys` would
    take over from it (see `model.lease`).
    """

    run: str
    phase: Phase
    message: str
    tiers: tuple[Standing, ...] = ()
    sinks: Mapping[str, int] = field(default_factory=dict)
    troubles: tuple[Trouble, ...] = ()
    recovery: Recovery | None = None
    estimate: Estimate | None = None
    standbys: tuple[Standby, ...] = ()
    next_at: Mapping[str, float] = field(default_factory=dict)
    footprint: Footprint | None = None

    def to_bytes(self) -> bytes:
        return json_of(self)

    @staticmethod
    def from_bytes(content: bytes | None) -> "Live | None":
        """None for what is missing or not ours."""
        try:
            facts = json.loads(content or b"")
            tiers = tuple(Standing.from_json(tier) for tier in facts.pop("tiers"))
            troubles = tuple(Trouble(**trouble) for trouble in facts.pop("troubles"))
            recovery, estimate = facts.pop("recovery"), facts.pop("estimate")
            standbys, footprint = tuple(Standby(**one) for one in facts.pop("standbys")), facts.pop("footprint", None)
            return Live(
                **facts, tiers=tiers, troubles=troubles, recovery=Recovery(**recovery) if recovery else None,
                estimate=_estimate(estimate) if estimate else None, standbys=standbys,
                footprint=Footprint.from_json(footprint) if footprint else None,
            )  # fmt: skip
        except MALFORMED:
            return None


def _estimate(facts: dict[str, Any]) -> Estimate:
    return Estimate(**facts | {"effort": Effort(**facts["effort"]), "pace": Pace(**facts["pace"])})


@dataclass(frozen=True, slots=True, repr=False)
class Status:
    """How a flow stands. `safe` is by kind of failure the newest epoch that survives it; `opened` the newest epoch that has its input;
    `bytes` are all layers, `needed_bytes` those of the newest state, the others are history; `input_bytes` what is kept of input that
    cannot be read again. `keep` is the ladder, `gives_up` when it will give up how many epochs next, if age decides that. `footprint`
    is what the run takes, measured now and then. `started_by`
    says who runs it, or ran it last. `next_deliveries`: when sinks with a pace of their own are served next. `skipped` is
    input that was set aside (`nosync skip`), by source.
    """

    flow: str
    phase: Phase
    message: str
    epoch: Epoch
    opened: int
    safe: Mapping[str, int]
    tiers: tuple[Standing, ...]
    sinks: Mapping[str, int]
    next_deliveries: Mapping[str, str]
    troubles: tuple[Trouble, ...]
    recovery: Recovery | None
    estimate: Estimate | None
    standbys: tuple[Standby, ...]
    started_by: Mapping[str, Any] | None
    shards: int
    views: tuple[str, ...]
    rows: Mapping[str, int]
    rejected: Mapping[str, int]
    skipped: Mapping[str, tuple[str, ...]]
    layers: int
    bytes: int
    needed_bytes: int
    input_bytes: int = 0
    keep: str = "all"
    kept_epochs: int = 0
    gives_up: tuple[str, int] | None = None
    footprint: Footprint | None = None

    @property
    def problems(self) -> dict[str, str]:
        """What stands still now, by duty, and why."""
        return {trouble.duty: trouble.message for trouble in self.troubles if trouble.since is not None}

    @property
    def history_bytes(self) -> int:
        return self.bytes - self.needed_bytes

    @property
    def space_amplification(self) -> float:
        return round(self.bytes / self.needed_bytes, 2) if self.needed_bytes else 1.0

    def to_json(self) -> dict[str, Any]:
        """For programs: names as PySpark writes them."""
        facts = {_camel(name): value for name, value in asdict(self).items()}
        derived = {"historyBytes": self.history_bytes, "spaceAmplification": self.space_amplification, "problems": self.problems}
        return {**facts, **derived}

    def then(self, sink: str) -> str:
        """When it gets more, where it has a pace of its own."""
        return f", gets more at {self.next_deliveries[sink]}" if sink in self.next_deliveries else ""

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """For people, one fact a line."""
        safe = ", ".join(f"{failure} {epoch}" for failure, epoch in self.safe.items())
        lines = [f"{self.flow}: {self.message}", f"epoch {self.epoch}, safe after loss of: {safe}"]
        lines += [f"sink {name} has epochs up to {epoch}{self.then(name)}" for name, epoch in self.sinks.items()]
        lines += [f"{trouble.duty}: {trouble.count} errors, the last: {trouble.message}" for trouble in self.troubles]
        return "\n".join(lines)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
