"""The journal's records on the remote: first and fast, since an epoch whose opening is there can be computed again; layers follow."""

import time
from collections.abc import Callable

from nosync.journal.journal import Journal, fenced_by
from nosync.model.errors import Conflict
from nosync.model.estimate import Meter
from nosync.model.safety import Standing

REQUESTS_A_RECORD = 3  # look, write, look


class RecordShipper:
    """Brings the journal's records to the remote."""

    def __init__(self, journal: Journal, meter: Meter | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.journal, self.meter, self.clock = journal, meter or Meter(), clock
        self.firsts = [record.number for record in journal.after(journal.base)]  # of the objects there; of earlier ones, at most these
        self.objects = 0
        self.bytes = 0

    def step(self) -> bool:
        """Ships what is new; says whether anything was. `Fenced` when another run is there."""
        before, begun = self.journal.shipped, self.clock()
        try:
            sent = self.journal.ship()
        except Conflict:
            assert self.journal.remote is not None
            self.journal.fence(fenced_by(self.journal.remote, self.journal.generation))
            self.journal.resolve()
            raise
        self.bytes += sent
        if sent:
            self.objects += 1
            with self.journal.lock:
                self.firsts.append(before + 1)
            self.meter.transfer(REQUESTS_A_RECORD, sent, self.clock() - begun)
        return sent > 0

    def standing(self) -> Standing:
        """Of records alone: an epoch whose opening is there can be computed again."""
        with self.journal.lock:
            shipped = self.journal.shipped
            behind = self.journal.recent.record_bytes_after(shipped)
        return Standing("site", shipped, self.journal.opened_by(shipped), behind, self.objects, self.bytes)

    def to_read(self) -> int:
        """How many objects of records a recovery would read."""
        with self.journal.lock:
            self.firsts = [first for first in self.firsts if first > self.journal.base]
            return len(self.firsts)
