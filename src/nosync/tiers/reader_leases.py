"""Leases of readers: what is being read is not deleted.

    HOME/readers/<name>   one JSON object: "record", the newest one that the reader knows of; "until", the time when it ends

A lease holds the files of all layers that the journal's records up to its own name. It is taken before the journal is read, with record
0, which holds everything; renewed while somebody reads; and it ends by itself, so that a reader who died holds nothing for long. Whoever
deletes asks after it has recorded what it will delete: a lease that comes later is of a reader who knows that already.
"""

import json
import os
import time
import weakref
from collections.abc import Callable
from contextlib import suppress

from nosync.journal.names import READERS, own
from nosync.model.errors import MALFORMED, NosyncError
from nosync.model.identifiers import NO_RECORD, RecordNumber
from nosync.model.run import is_own, own_name
from nosync.model.store import Disk

SECONDS = 600.0
LONGEST = 30 * 86_400.0  # nobody reads for longer


class Lease:
    """One reader's hold."""

    def __init__(self, disk: Disk, seconds: float = SECONDS, now: Callable[[], float] = time.time) -> None:
        self.disk, self.seconds, self.now = disk, seconds, now
        self.name = f"{READERS}/{own_name()}"
        self.until = 0.0
        self.renew(NO_RECORD)

    @property
    def live(self) -> bool:
        return self.now() < self.until

    def renew(self, record: RecordNumber) -> None:
        """From now on, for what records up to this one name."""
        until = self.now() + self.seconds
        self.disk.replace(self.name, json.dumps({"record": record, "until": until}).encode())
        self.until = until

    def end(self) -> None:
        self.disk.delete(self.name)


class HeldLease:
    """A lease for as long as somebody has this object, and uses it. Where a reader may not write, nothing is held for it."""

    def __init__(self, disk: Disk) -> None:
        self.record = NO_RECORD
        self._lease: Lease | None = None
        with suppress(NosyncError):
            self._lease = Lease(disk)
            self._end = weakref.finalize(self, _end, self._lease, os.getpid())

    def take(self, record: RecordNumber) -> None:
        """Holds what the records up to this one name."""
        self.record = record
        self._renewed(record)

    def renew(self) -> bool:
        """Says whether nothing was given up meanwhile. If something may have been, everything that is there now is held."""
        lease = self._lease
        if lease is None or lease.now() < lease.until - lease.seconds / 2:
            return True
        held = lease.live
        self._renewed(self.record if held else NO_RECORD)
        return held

    def _renewed(self, record: RecordNumber) -> None:
        if self._lease is not None:
            with suppress(NosyncError):
                self._lease.renew(record)

    def lend(self) -> None:
        """The lease ends by itself, and not with this object."""
        if self._lease is not None:
            self._end.detach()


def _end(lease: Lease, process: int) -> None:
    if os.getpid() == process:  # not by a fork of it
        with suppress(NosyncError):
            lease.end()


class Leases:
    """All that there are in a home, for whoever deletes; those of this process are held in memory."""

    def __init__(self, disk: Disk, now: Callable[[], float] = time.time) -> None:
        self.disk, self.now = disk, now
        self.own: list[tuple[RecordNumber, float]] = []

    def hold(self, record: RecordNumber, seconds: float = SECONDS) -> None:
        """For a reader in this process, from before it looks what there is: its lease ends by itself."""
        self.own.append((record, self.now() + seconds))  # by many threads at once

    def oldest(self) -> RecordNumber | None:
        """What is named by a record up to this one may be being read; None where nobody reads. Leases that have ended are cleared away."""
        now = self.now()
        for ended in [hold for hold in self.own if hold[1] <= now]:
            self.own.remove(ended)
        found = [record for record, _ in self.own]
        for name in own(self.disk.sizes(READERS)):
            record, until = _facts(self.disk.read(name))
            if self.now() < until < self.now() + LONGEST:
                found.append(record)
            else:
                self.disk.delete(name)
        return min(found, default=None)


def leases_of_others(disk: Disk, now: float) -> list[tuple[RecordNumber, float]]:
    """The leases that readers in other processes have now: up to which record each holds what is named, and until when."""
    found = [_facts(disk.read(name)) for name in own(disk.sizes(READERS)) if not is_own(name.rpartition("/")[2])]
    return sorted((record, until) for record, until in found if now < until < now + LONGEST)


def _facts(content: bytes | None) -> tuple[RecordNumber, float]:
    try:
        facts = json.loads(content or b"")
        return RecordNumber(int(facts["record"])), float(facts["until"])
    except MALFORMED:
        return NO_RECORD, 0.0
