"""How the flow in a home stands: the journal's image and what the run says of itself, as one value."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from nosync.journal.chain import Chain
from nosync.journal.image import Image
from nosync.journal.record import NOT_OURS, Record
from nosync.model.errors import reading
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber
from nosync.model.ladder import ladder_of
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.policies.table import policy_named
from nosync.model.retention import FIRST, pin_holds
from nosync.model.run import process_has_ended
from nosync.model.safety import Standing
from nosync.model.status import Live, Status
from nosync.model.store import Disk, Store
from nosync.model.text import iso_seconds
from nosync.tiers.host import synced_number
from nosync.tiers.progress import epoch_before, opened_before

STATUS = "status"  # of the home; see `nosync.model.status`
ENDED = ("stopped", "failed")


def read_live(store: Store, image: Image) -> Live:
    """What the newest run says of itself; what can be known without it where it says nothing, or nothing any more."""
    started, said = image.started, Live.from_bytes(store.read(STATUS))
    if started is None:
        return Live("", "starting", "Starting")
    if said is None or said.run != started.run:
        said = Live(started.run, "starting", "Starting")
    if said.phase not in ENDED and process_has_ended(started.process, started.host, started.boot):
        words = f"Interrupted: process {started.process} on {started.host} ended without stopping"
        return replace(said, phase="interrupted", message=words, recovery=None, footprint=None)
    return said


def recorded_safe(image: Image, disk: Disk, chain: Chain, after: Callable[[RecordNumber], Iterable[Record]]) -> dict[str, Epoch]:
    """By kind of failure, the newest epoch that survives it as far as the home knows: what was reached since the last record it does not.
    A worse failure never has a newer one. `after` gives the records behind a number.
    """
    policy = policy_named(image.declared.policy) if image.declared else LOG_STRUCTURED
    known, tiers = dict[str, Epoch](image.reached), policy.tiers(remote="site" in image.reached)
    for tier in tiers:
        if tier.survives == "host":
            synced = max(synced_number(disk, chain, tier.layers), chain.base)
            known["host"] = epoch_before(image, after(synced), synced) if tier.layers else opened_before(image, synced)
    return policy.safe_points(image.epoch, [Standing(tier.survives, NO_RECORD, known[tier.survives], 0, 0, 0) for tier in tiers])


def status_of(image: Image, safe: Mapping[str, int], live: Live, input_bytes: int = 0, now: float | None = None) -> Status:
    """`safe` by kind of failure, as whoever asks knows it; so `input_bytes`, and what time it is."""
    declared = image.declared
    return Status(
        flow=declared.flow if declared else "",
        phase=live.phase,
        message=live.message,
        epoch=image.epoch,
        opened=image.last_opened,
        safe=dict(safe),
        tiers=live.tiers,
        sinks={name: max(image.released.get(name, 0), live.sinks.get(name, 0)) for name in (declared.sinks if declared else ())},
        next_deliveries={} if live.phase in (*ENDED, "interrupted") else {sink: iso_seconds(at) for sink, at in live.next_at.items()},
        troubles=live.troubles,
        recovery=live.recovery,
        estimate=live.estimate,
        standbys=live.standbys,
        started_by=_started(image),
        shards=declared.shards if declared else 0,
        views=tuple(declared.views if declared else ()),
        rows=dict(image.rows),
        rejected=dict(image.rejected),
        skipped={source: tuple(names) for source, names in image.skipped.items()},
        layers=image.kept_layers,
        bytes=sum(image.kept_bytes.values()),
        needed_bytes=sum(layer.bytes for layer in image.newest_layers()),
        input_bytes=input_bytes,
        keep=image.keep or "all",
        kept_epochs=image.kept.count(FIRST, image.epoch),
        footprint=live.footprint,
        gives_up=_gives_up(image, time.time() if now is None else now),
    )


def _gives_up(image: Image, now: float) -> tuple[str, int] | None:
    return next_loss(image.keep, image.epoch, image.times, image.pins, now)


def next_loss(keep: str, newest: Epoch, times: Mapping[Epoch, float], pins: Mapping[str, Epoch], now: float) -> tuple[str, int] | None:
    """When the ladder gives up how many epochs next."""
    known = {epoch: at for epoch, at in times.items() if epoch <= newest}
    found = ladder_of(keep).next_loss(newest, known, now, pin_holds(pins)) if keep and known else None
    return (iso_seconds(found[0]), found[1]) if found else None


def _started(image: Image) -> dict[str, Any] | None:
    """Who runs the flow, or ran it last."""
    if image.started is None:
        return None
    with reading("the start of the run in the journal", NOT_OURS):
        at = iso_seconds(image.started.at)
    return {"run": image.started.run, "process": image.started.process, "host": image.started.host, "at": at}
