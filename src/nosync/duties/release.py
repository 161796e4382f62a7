"""Releasing output to sinks: in epoch order, each epoch once its sink may have it, the intent recorded first.

A run that was fenced cannot record the intent, and so begins no delivery. Where records go to a remote the intent must be there, since that
is where runs on other hosts are fenced. What was delivered is noted with the next record; a crash in between delivers again. To a sink that
would show that, one epoch at a time.

A sink with a pace of its own is served in rounds: what is due when a round begins. Where that is one delivery, a sink can tell it again
only if it has the same epochs, so the intent must survive whatever the flow survives, and is carried out before anything else, also by a
run that has other terms. What a run finds undelivered and unintended goes epoch by epoch: it may have been delivered so already.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nosync.journal.entries import Released, Releasing
from nosync.journal.journal import Journal
from nosync.model.identifiers import NO_EPOCH, NO_RECORD, Epoch, RecordNumber
from nosync.model.policy import Policy
from nosync.model.safety import Standing
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
        self.delivered = {sink: image.released.get(sink, NO_EPOCH) for sink in sinks}
        self.intended = {sink: self._left_over(sink) for sink in sinks}
        self.found = image.last_opened  # epochs up to here may have been delivered each by itself
        self.paces = {sink: Pace() for sink in sinks}
        self.hurried = NO_EPOCH

    def step(self, sink: str) -> bool:
        """One delivery to a sink, or one intent; says whether there was any. Sinks may be served at once, by a thread each."""
        done, intent = self.delivered[sink], self.intended[sink]
        if intent.epoch <= done:
            return self._intend(sink, done)
        if not self._is_recorded(intent) or (intent.together and self.due(sink) < intent.epoch):
            return False
        if self.arrive is not None:
            self.arrive()
        self.journal.look()  # at last: all that takes long is done
        last = intent.epoch if intent.together else Epoch(done + 1)
        self.outlet.deliver(sink, Epoch(done + 1), last)
        if last == intent.epoch:
            self.journal.note(Released(sink, last))
        self.delivered[sink] = last
        return True

    def due(self, sink: str) -> Epoch:
        """The newest epoch that the sink may have now, whatever its pace."""
        with self.journal.lock:
            return self.policy.releasable(self.sinks[sink].release, self.journal.image.epoch, self.journal.opened_by, self.standings())

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
        due = min(due, Epoch(done + most))
        if terms.together and not together:
            due = min(due, self.found)
        self.intended[sink] = Intent(due, together, self.journal.append(Releasing(sink, due, together)))
        return True
