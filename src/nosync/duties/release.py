"""Releasing output to sinks: in epoch order, each epoch once its sink may have it, the intent recorded first.

A run that was fenced cannot record the intent, and so begins no delivery. Where records go to a remote the intent must be there, since that
is where runs on other hosts are fenced. What was delivered is noted with the next record; a crash in between delivers again. To a sink that
would show that, one epoch at a time.
"""

from collections.abc import Callable, Mapping, Sequence

from nosync.journal.entries import Released, Releasing
from nosync.journal.journal import Journal
from nosync.model.identifiers import NO_EPOCH, NO_RECORD, Epoch
from nosync.model.policy import Policy
from nosync.model.safety import Release, Standing
from nosync.model.sink import Outlet

MOST_EPOCHS = 64


class Releaser:
    """Delivers what is due. `sinks` says when each may have an epoch."""

    def __init__(
        self, journal: Journal, sinks: Mapping[str, Release], outlet: Outlet, policy: Policy, standings: Callable[[], Sequence[Standing]]
    ) -> None:
        self.journal, self.sinks, self.outlet, self.policy, self.standings = journal, sinks, outlet, policy, standings
        self.most = {sink: MOST_EPOCHS if outlet.precise(sink) else 1 for sink in sinks}
        self.delivered = {sink: journal.image.released.get(sink, NO_EPOCH) for sink in sinks}
        self.intended = dict.fromkeys(sinks, (NO_EPOCH, NO_RECORD))  # up to which epoch, in which record

    def step(self, sink: str) -> bool:
        """One delivery to a sink, or one intent; says whether there was any. Sinks may be served at once, by a thread each."""
        done = self.delivered[sink]
        epoch, number = self.intended[sink]
        if epoch <= done:
            return self._intend(sink, done)
        if any(tier.survives == "site" and tier.number < number for tier in self.standings()):
            return False
        self.journal.look()
        self.outlet.deliver(sink, done + 1)
        if done + 1 == epoch:
            self.journal.note(Released(sink, epoch))
        self.delivered[sink] = done + 1
        return True

    def due(self, sink: str) -> Epoch:
        """The newest epoch that the sink may have now."""
        with self.journal.lock:
            return self.policy.releasable(self.sinks[sink], self.journal.image.epoch, self.journal.opened_by, self.standings())

    def _intend(self, sink: str, done: Epoch) -> bool:
        due = min(self.due(sink), done + self.most[sink])
        if due <= done:
            return False
        self.intended[sink] = (due, self.journal.append(Releasing(sink, due)))
        return True
