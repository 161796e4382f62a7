"""Releasing output to sinks: in epoch order, each epoch once its sink may have it, the intent recorded first.

A run that was fenced cannot record the intent, and so begins no delivery. Where records go to a remote the intent must be there, since that
is where runs on other hosts are fenced. What was delivered is noted with the next record; a crash in between delivers again. To a sink that
would show that, one epoch at a time.

A sink with a pace of its own is served in rounds: what is due when a round begins. Where that is one delivery, a sink can tell it again
only if it has the same epochs, so the intent must survive whatever the flow survives, and is carried out before anything else, also by a
run that has other terms. What a run finds undelivered and unintended goes epoch by epoch: it may have been delivered so already.

An epoch that left no layer for a sink changes nothing there: it is passed over once the sink might have it, without intent, delivery or
record. Whether it may be is known from the layers alone, so that the next run passes over the same ones; what a sink has come to is
recorded with what it is given next, and when the run ends. The first epoch of all comes whatever it holds, alone, so that a target is made.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nosync.journal.entries import Released, Releasing
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.model.identifiers import NO_EPOCH, NO_RECORD, Epoch, RecordNumber, TraceName
from nosync.model.policy import Policy
from nosync.model.safety import Failure, Release, Standing
from nosync.model.sink import Outlet, Terms

MOST_EPOCHS = 64
MOST_TOGETHER = 512


@dataclass(frozen=True, slots=True)
class Intent:
    """To deliver epochs up to this one, as one or each by itself. `number` is that of its record."""

    epoch: Epoch = NO_EPOCH
    together: bool = False
    number: RecordNumber = NO_RECORD


@dataclass
class Pace:
    """When a sink is served: the round under way goes up to an epoch, the next one begins at a time."""

    upto: Epoch = NO_EPOCH
    at: float = 0.0

    def round(self, due: Epoch, done: Epoch, every: float, now: float, hurried: bool) -> Epoch:
        """Up to which epoch the sink gets output now. Rounds begin at whole multiples of `every`, as Spark's triggers do."""
        if self.upto <= done < due and (hurried or not now < self.at <= now + every):
            self.upto, self.at = due, (now // every + 1) * every
        return self.upto


class Releaser:
    """Delivers what is due. `sinks` says when each may have an epoch. `arrive` waits until what is recorded is in the home, where others
    write layers.
    """

    def __init__(
        self,
        journal: Journal,
        sinks: Mapping[str, Terms],
        outlet: Outlet,
        policy: Policy,
        standings: Callable[[], Sequence[Standing]],
        now: Callable[[], float] = time.time,
        arrive: Callable[[], None] | None = None,
    ) -> None:
        self.arrive = arrive
        self.journal, self.sinks, self.outlet, self.policy, self.standings, self.now = journal, sinks, outlet, policy, standings, now
        image = journal.image
        self.delivered = {sink: image.released.get(sink, NO_EPOCH) for sink in sinks}  # or passed over
        self.given = dict(self.delivered)  # really
        self.hasty = [sink for sink, terms in sinks.items() if terms.release == "safe" and not terms.every]
        self.traces = _passing(image, sinks)
        unsure = {sink: image.releasing.get(sink, (done + 1, False))[0] - done for sink, done in self.delivered.items()}
        self.fresh = {sink for sink in self.traces if unsure[sink] == 1}
        self.intended = {sink: self._left_over(sink) for sink in sinks}
        self.found = image.last_opened  # epochs up to here may have been delivered each by itself
        self.paces = {sink: Pace() for sink in sinks}
        self.hurried = NO_EPOCH

    def step(self, sink: str) -> bool:
        """One delivery to a sink, or one intent; says whether there was any. Sinks may be served at once, by a thread each."""
        done, intent = self.delivered[sink], self.intended[sink]
        if intent.epoch <= done:
            with self.journal.lock:
                return self._intend(sink, self._pass_over(sink, self.due(sink)))
        if not self._is_recorded(intent) or (intent.together and self.due(sink) < intent.epoch):
            return False
        last = intent.epoch if intent.together else self._next(sink, done, intent.epoch)
        if last is not None:
            self._deliver(sink, Epoch(done + 1) if intent.together else last, last)
        if last is None or last == intent.epoch:
            self.journal.note(Released(sink, intent.epoch))
        self.delivered[sink] = last or intent.epoch
        return True

    def _deliver(self, sink: str, first: Epoch, last: Epoch) -> None:
        if self.arrive is not None:
            self.arrive()
        self.journal.look()  # at last: all that takes long is done
        self.outlet.deliver(sink, first, last)
        self.given[sink] = last
        self.fresh.discard(sink)

    def due(self, sink: str) -> Epoch:
        """The newest epoch that the sink may have now, whatever its pace."""
        return self._releasable(self.sinks[sink].release)

    def _releasable(self, release: Release) -> Epoch:
        with self.journal.lock:
            return self.policy.releasable(release, self.journal.image.epoch, self.journal.opened_by, self.standings())

    def waiting(self) -> list[str]:
        """The sinks that have something to get, or will once an intent is where it must be. The others have come as far as they may."""
        with self.journal.lock:
            due = {release: self._releasable(release) for release in {terms.release for terms in self.sinks.values()}}
            done = {sink: self._pass_over(sink, due[terms.release]) for sink, terms in self.sinks.items()}
            return [sink for sink, terms in self.sinks.items() if done[sink] < max(due[terms.release], self.intended[sink].epoch)]

    def awaits(self, tier: Failure) -> bool:
        """Whether some sink that has all it may have would get more at once if only this tier had all epochs."""
        with self.journal.lock:
            others = [standing.epoch for standing in self.standings() if standing.survives != tier]
            due, last = self._releasable("safe"), min([self.journal.image.epoch, *others])
            return due < last and any(
                self._next(sink, self.delivered[sink], due) is None and self._next(sink, due, last) is not None for sink in self.hasty
            )

    def held(self) -> dict[str, Epoch]:
        """Up to where nobody will ask for a sink's output again: what it was given is on record, and what it was not changes nothing."""
        with self.journal.lock:
            recorded = {sink: self.journal.image.released.get(sink, NO_EPOCH) for sink in self.sinks}
            return {sink: self.delivered[sink] if epoch >= self.given[sink] else epoch for sink, epoch in recorded.items()}

    def note(self) -> None:
        """What has been passed over goes with the next record, so that it is known without looking for layers."""
        with self.journal.lock:
            for sink, done in self.delivered.items():
                if self.journal.image.released.get(sink, NO_EPOCH) < done >= self.intended[sink].epoch:
                    self.journal.note(Released(sink, done))

    def _pass_over(self, sink: str, due: Epoch) -> Epoch:
        """How far the sink has come. Epochs up to `due` that have nothing for it are passed over, unless there is an intent."""
        done = self.delivered[sink]
        if self.intended[sink].epoch <= done < due:
            first = self._next(sink, done, due)
            self.delivered[sink] = done = due if first is None else Epoch(first - 1)
        return done

    def _next(self, sink: str, done: Epoch, last: Epoch) -> Epoch | None:
        """The first epoch behind `done` that has something for the sink, up to the last."""
        if sink not in self.traces or sink in self.fresh:
            return Epoch(done + 1) if done < last else None
        with self.journal.lock:
            written = self.journal.image.traces.get(self.traces[sink], {})
            ends = (layer.upper for layers in written.values() for layer in layers)
            return min((Epoch(end - 1) for end in ends if done + 1 < end <= last + 1), default=None)

    def hurry(self) -> None:
        """What has been computed by now waits for no time."""
        self.hurried = self.journal.image.epoch

    def next_at(self) -> dict[str, float]:
        """When sinks with a pace of their own are served next, as far as they have to wait."""
        return {sink: self.paces[sink].at for sink, terms in self.sinks.items() if terms.every and self.paces[sink].at > self.now()}

    def _left_over(self, sink: str) -> Intent:
        """What an earlier run meant to deliver as one, and may have."""
        epoch, together = self.journal.image.releasing.get(sink, (NO_EPOCH, False))
        return Intent(epoch, True, self.journal.image.number) if together else Intent()

    def _is_recorded(self, intent: Intent) -> bool:
        """Wherever it must be."""
        return all(tier.number >= intent.number for tier in self.standings() if intent.together or tier.survives == "site")

    def _intend(self, sink: str, done: Epoch) -> bool:
        terms, due = self.sinks[sink], self.due(sink)
        if terms.every:
            due = self.paces[sink].round(due, done, terms.every, self.now(), done < self.hurried)
        if due <= done:
            return False
        together = terms.together and done >= self.found
        most = MOST_TOGETHER if together else MOST_EPOCHS if self.outlet.precise(sink) else 1
        due = min(due, Epoch(done + (most if sink not in self.fresh or together else 1)))
        if terms.together and not together:
            due = min(due, self.found)
        self.intended[sink] = Intent(due, together, self.journal.append(Releasing(sink, due, together)))
        return True


def _passing(image: Image, sinks: Mapping[str, Terms]) -> dict[str, TraceName]:
    """By sink, the trace whose layers say which epochs have something for it; not of those that get each epoch."""
    declared = image.declared.sinks if image.declared else {}
    traces = {sink: str(declared.get(sink, {}).get("trace", "")) for sink, terms in sinks.items() if not terms.unchanged}
    return {sink: TraceName(trace) for sink, trace in traces.items() if trace}
