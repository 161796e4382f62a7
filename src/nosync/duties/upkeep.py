"""All that runs behind the stream: tiers, release, trimming, rolling up, sweeping. Each duty is a `step` that does one thing and says
whether there was one.

The run gives each duty a thread (see `tending`); the simulation calls them in any order. No duty waits for another.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from nosync.duties.compacting import Compactor
from nosync.duties.release import Releaser
from nosync.duties.trimming import BATCH, Trim, Trimmer
from nosync.duties.troubles import Troubles
from nosync.journal.entries import Reached, Thinned
from nosync.journal.forgetting import Forgetter
from nosync.journal.journal import Journal
from nosync.journal.rolling import ROLL_RECORDS, Roller
from nosync.journal.taken import MarksOf
from nosync.model.compaction import DEFAULT, Compaction
from nosync.model.errors import OutcomeUnknown, Unavailable
from nosync.model.estimate import LEAST_RECORDS, PACE, Effort, Estimate, Meter, Pace, allowance, seconds_for
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber
from nosync.model.ladder import ladder_of
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.policy import Policy, Tier
from nosync.model.retention import EVERY_EPOCH, Hold, Retention, boundary, pin_holds, record_holds, recovery_holds, release_holds
from nosync.model.safety import Failure, Standing
from nosync.model.sink import Outlet, Terms
from nosync.model.store import Disk, Remote, Uploader
from nosync.peers.arrivals import Arrivals
from nosync.tiers.host import HostTier
from nosync.tiers.layer_shipper import LayerShipper
from nosync.tiers.reader_leases import Leases
from nosync.tiers.record_shipper import RecordShipper
from nosync.tiers.sweeper import Sweeper

Duty = Callable[[], bool]
LOOK_EPOCHS = 256
ESTIMATE_SECONDS = 10.0
LOOK_SECONDS = 10.0
STOOD_BY_SECONDS = 1.0  # layers wait no longer where somebody would have to compute again what has not arrived


class Upkeep:
    """The duties of one run: `policy` says which. `uploader` brings layers to the remote; without one, the remote's own `upload` does.
    `verify` reads a layer that came from the remote. `arrivals`: what tasks write on hosts that do not see the home.
    """

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        remote: Remote | None,
        sinks: Mapping[str, Terms],
        outlet: Outlet,
        sources: Mapping[str, Trim],
        *,
        policy: Policy = LOG_STRUCTURED,
        roll_records: int = ROLL_RECORDS,
        trim_batch: int = BATCH,
        uploader: Uploader | None = None,
        marks_of: MarksOf | None = None,
        troubles: Troubles | None = None,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        stood_by: Callable[[], bool] = lambda: False,
        verify: Callable[[LayerInfo], bool] = lambda layer: True,
        arrivals: Arrivals | None = None,
        knobs: Compaction = DEFAULT,
    ) -> None:
        self.arrivals = arrivals
        self.clock, self.now, self.retention, self.stood_by = clock, now, retention, stood_by
        self.journal, self.disk, self.remote = journal, disk, remote
        self.policy, self.meter = policy, Meter(Pace.from_bytes(disk.read(PACE)))
        self._build_tiers({tier.survives: tier for tier in policy.tiers(remote is not None)}, uploader)
        arrive = arrivals.catch_up if arrivals is not None else None
        self.releaser = Releaser(journal, sinks, outlet, policy, self.standings, now, arrive)
        self.trimmer = Trimmer(journal, sources, self.may_go, self.standings, trim_batch)
        self.roll_records = roll_records
        self.roller = Roller(journal, disk, remote, roll_records, marks_of or {}, knobs=knobs)
        self.forgetter = Forgetter(journal, disk, remote)
        self.looked = journal.image.epoch
        self.reported = journal.image.reached.get("site", 0)
        self.troubles = troubles or Troubles()
        self.estimate: Estimate | None = None
        self.estimated = -ESTIMATE_SECONDS
        self.looked_at = clock()
        self.leases = Leases(disk, self.now)
        coming = (self.arrivals.is_coming,) if self.arrivals is not None else ()
        self.compactor = Compactor(journal, disk, remote, self.host, self.layers, self.may_go, self.leases.oldest, verify, *coming)
        self.keeps_all = False  # somebody reads the past, and makes layers that no record names yet
        self.sweepers = [Sweeper(journal, store, self.unnamed_may_go, self.leases.oldest) for store in (disk, remote) if store is not None]

    def _build_tiers(self, wanted: Mapping[Failure, Tier], uploader: Uploader | None) -> None:
        """What brings state to the tiers that the policy asks for."""
        host, site = wanted.get("host"), wanted.get("site")
        arrived = self.arrivals.reached if self.arrivals is not None else None
        self.host = HostTier(self.journal, self.disk, host.layers, arrived) if host is not None else None
        self.records: RecordShipper | None = None
        self.layers: LayerShipper | None = None
        self.recover_within = site.recover_within if site is not None else None
        if site is not None and self.remote is not None:
            self.records = RecordShipper(self.journal, self.meter)
        if site is not None and site.layers and self.remote is not None:
            self.patience = site.patience_seconds
            few = (site.most_layers, uploader, site.patience_seconds)
            self.layers = LayerShipper(self.journal, self.disk, self.remote, *few, meter=self.meter)
            self.layers.is_coming = self.arrivals.is_coming if self.arrivals is not None else self.layers.is_coming

    def duties(self) -> dict[str, Duty]:
        """By name; each tier has one or two, each sink its own: none waits for another."""
        host: dict[str, Duty] = {"host": self.host.step} if self.host is not None else {}
        if self.arrivals is not None:
            host["arrivals"] = self.arrivals.step
        sinks: dict[str, Duty] = {f"sink {sink}": partial(self.releaser.step, sink) for sink in self.releaser.sinks}
        site = {"records": self.records, "layers": self.layers}
        return {**host, **sinks, "tidy": self.tidy, **{name: shipper.step for name, shipper in site.items() if shipper is not None}}

    def standings(self) -> list[Standing]:
        """The tiers, from the nearest to the farthest."""
        found = [replace(self.arrivals.standing(), problem=self.troubles.problem("arrivals"))] if self.arrivals is not None else []
        found += [replace(self.host.standing(), problem=self.troubles.problem("host"))] if self.host is not None else []
        if self.records is not None:
            site = self.layers.standing(self.records) if self.layers is not None else self.records.standing()
            found.append(replace(site, problem=self.troubles.problem("records", "layers")))
        return found

    def safe(self) -> dict[str, Epoch]:
        return self.policy.safe_points(self.journal.image.epoch, self.standings())

    def reproducible(self) -> Epoch:
        """The newest computed epoch whose input is on every tier: whatever is lost, it can be computed again."""
        return self.journal.opened_by(min((tier.number for tier in self.standings()), default=self.journal.number))

    def holds(self) -> list[Hold]:
        """Why epochs must stay, whatever the rule."""
        with self.journal.lock:
            return self.policy.input_holds(self.standings()) + release_holds(self.releaser.held())

    def may_go(self, newest: Epoch) -> Epoch:
        """Up to which epoch input may be deleted."""
        return self.rule().boundary(newest, self.holds())

    def unnamed_may_go(self, newest: Epoch) -> Epoch:
        """Up to which epoch layers may be deleted that no record names: neither a sink nor a recovery will ask for them."""
        return self.rule().boundary(newest, ())

    def report(self) -> list[dict[str, Any]]:
        """The tiers for people and programs: how far each is, what it cost, why it stands still."""
        return [
            {
                "survives": tier.survives,
                "epoch": tier.epoch,
                "bytesBehind": tier.behind,
                "objects": tier.objects,
                "bytes": tier.bytes,
                "problem": tier.problem.message if tier.problem else None,
            }
            for tier in self.standings()
        ]

    def tidy(self) -> bool:
        """Thins, trims, rolls up, and sweeps: now and then it looks for what was left behind lately."""
        due = self.clock() - self.estimated >= ESTIMATE_SECONDS
        if due:
            self.measure()
        if self.layers is not None:
            self.layers.patience = min(self.patience, STOOD_BY_SECONDS) if self.stood_by() else self.patience
        self._note_reached()
        if self.keeps_all:
            return _each([self._keep_pace] * due + [self._look])
        self._thin()
        everywhere = RecordNumber(boundary(self.journal.number, record_holds(self.standings())))
        if self.journal.image.epoch >= self.looked + LOOK_EPOCHS:
            self.look_for_orphans()
        parts: list[Duty] = [partial(sweeper.step, everywhere) for sweeper in self.sweepers] + [self._keep_pace] * due
        parts.append(partial(self.compactor.step, everywhere))
        parts += [self.trimmer.step, partial(self.roller.step, min(everywhere, self._noticed())), self.forgetter.step]
        return _each([*parts, self._look])

    def _look(self) -> bool:
        """Whoever has nothing to write would never learn otherwise that another run took over."""
        if self.clock() - self.looked_at >= LOOK_SECONDS:
            self.looked_at = self.clock()
            self.journal.look()
        return False

    def _note_reached(self) -> None:
        """How far the remote is goes with the next record: nobody else can know it without asking there."""
        for tier in self.standings():
            if tier.survives == "site" and tier.epoch != self.reported:
                self.reported = tier.epoch
                self.journal.note(Reached("site", tier.epoch))

    def _thin(self) -> None:
        """Records which epochs are kept, where they are fewer than before."""
        with self.journal.lock:
            image, pins = self.journal.image, pin_holds(self.journal.image.pins)
            times = {epoch: at for epoch, at in image.times.items() if epoch <= image.epoch}
            kept = image.kept.of(self.rule().kept(image.epoch, times, self.now(), [*self.holds(), *pins]))
            if kept != image.kept:
                new = tuple(epoch for epoch in kept.among if epoch >= image.kept.since)
                gone = tuple(epoch for epoch in image.kept.among if epoch not in kept)
                self.journal.append(Thinned(kept.since, new, gone))

    def rule(self) -> Retention:
        """What is kept: as the journal says, unless this run was given a rule of its own."""
        keep = self.journal.image.keep
        return self.retention or (_ladder(keep) if keep else EVERY_EPOCH)

    def measure(self) -> None:
        """How long a recovery from the remote would take now. With an aim, it decides how many objects there may be."""
        self.estimated = self.clock()
        if self.records is None or self.layers is None:
            return
        (layers, size), site = self.layers.to_fetch(), self.layers.standing(self.records)
        objects, pace = self.records.to_read(), self.meter.pace
        effort = Effort(objects, layers, size, self.journal.image.epoch - site.epoch)
        kept = True
        if self.recover_within is not None:
            allowed = allowance(self.recover_within, effort, pace)
            self.layers.most_layers, kept = allowed.layers, allowed.kept
            recorded = max(1, self.journal.shipped - self.journal.base) / max(1, objects)  # records in an object
            self.roller.every = max(LEAST_RECORDS, min(self.roll_records, int(allowed.records * recorded)))
        self.estimate = Estimate(round(seconds_for(effort, pace), 1), self.recover_within, kept, effort, pace)

    def _keep_pace(self) -> bool:
        """The next run starts with what this one has measured."""
        self.disk.replace(PACE, self.meter.pace.to_bytes())
        return False

    def look_for_orphans(self) -> int:
        """Files of layers that no record names, or none any more."""
        if self.keeps_all:
            return 0
        image, self.looked = self.journal.snapshot()[0], self.journal.image.epoch
        return sum(sweeper.look(image) for sweeper in self.sweepers)

    def clear_beginnings(self) -> None:
        """Files that earlier runs began and never finished."""
        self.disk.clear_beginnings(self.journal.generation)

    def _noticed(self) -> RecordNumber:
        """Up to which record nobody needs the records themselves any more: merged layers are synced, and the layers to ship are known.

        None before every tier has the layers too. Of what is rolled up nobody knows any more what was lost before it was safe.
        """
        candidate = self.roller.candidate
        if candidate is not None and boundary(candidate.image.epoch, recovery_holds(self.standings())) < candidate.image.epoch:
            return NO_RECORD
        known = [self.host.synced] if self.host is not None else []
        return min([self.journal.number, *known, *([self.layers.number] if self.layers is not None else [])])


_ladder = cache(ladder_of)  # asked for in every round of a run


def _each(parts: Sequence[Duty]) -> bool:
    """Does them all: one that fails does not hold up the others. Raises what went wrong first."""
    did, failures = False, list[Unavailable | OutcomeUnknown]()
    for part in parts:
        try:
            did = part() or did
        except (Unavailable, OutcomeUnknown) as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return did
