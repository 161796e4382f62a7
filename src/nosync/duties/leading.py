"""Says to those who stand by on other hosts that this run still leads (see `model.lease`).

From the moment that a run may write until it ends, also while it recovers. Nothing waits for it. Without anybody who stands by it costs a
listing every ten seconds; with somebody, a write every 0.7 seconds.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from nosync.duties.troubles import Troubles
from nosync.journal.journal import Journal
from nosync.journal.names import LEASES, STANDBYS, lease_name, own
from nosync.model.errors import Fenced, NosyncError
from nosync.model.lease import LEASE_SECONDS, NOTICE_SECONDS, RENEW_SECONDS, Lease, Roll, Standby
from nosync.model.run import Runner
from nosync.model.store import Store

Found = TypeVar("Found")
JOIN_SECONDS = 5.0


class Leading:
    """The lease of one run. `store` is where runs meet. `start` gives it a thread, until `stop`; the simulation steps it."""

    def __init__(
        self, journal: Journal, store: Store, runner: Runner, troubles: Troubles, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.journal, self.store, self.troubles, self.clock = journal, store, troubles, clock
        self.lease = Lease(journal.run, runner.process, runner.host, 0)
        self.roll = Roll.empty()
        self.look_at, self.renewed_at = clock(), clock()
        self._thread: tuple[threading.Thread, threading.Event] | None = None

    @property
    def standbys(self) -> tuple[Standby, ...]:
        return self.roll.present

    def step(self) -> float:
        """Does what is due; gives the seconds until there is more."""
        first, now = not self.lease.beat, self.clock()
        if now >= self.look_at:
            self._look(first)
            self.look_at = now + NOTICE_SECONDS
        if self.standbys or first:
            self._renew()
        return max(0.0, now + (RENEW_SECONDS if self.standbys else NOTICE_SECONDS) - self.clock())

    def _look(self, first: bool) -> None:
        names = own(self.store.sizes(STANDBYS))
        self.roll.look(self.store.read_all(names) if names else {})
        gone = [name for name in own(self.store.sizes(LEASES)) if name < lease_name(self.journal.generation)] if first else []
        for name in [*self.roll.forgotten, *gone]:
            self.store.delete(name)

    def _renew(self) -> None:
        """Whoever comes too late asks at once whether another has taken over: it may have been paused, or cut off."""
        if self.lease.beat and self.clock() - self.renewed_at > LEASE_SECONDS:
            self.journal.look()
        begun = self.clock()
        self._write(ended=False)
        self.renewed_at = begun

    def end(self) -> None:
        """Whoever stands by need not wait."""
        self._write(ended=True)

    def _write(self, ended: bool) -> None:
        self.lease = replace(self.lease, beat=self.lease.beat + 1, ended=ended)
        self.store.replace(lease_name(self.journal.generation), self.lease.to_bytes())

    def start(self) -> None:
        stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(stopping,), name="nosync lease", daemon=True), stopping
        self._thread[0].start()

    def stop(self) -> None:
        """The run is over: if nobody has followed it, somebody may, at once."""
        if self._thread is not None:
            thread, stopping = self._thread
            stopping.set()
            thread.join(JOIN_SECONDS)
            self._try(self.end)

    def _run(self, stopping: threading.Event) -> None:
        pause = 0.0
        while not stopping.wait(pause) and self.journal.fenced is None:
            done = self._try(self.step)
            pause = RENEW_SECONDS if done is None else done

    def _try(self, act: Callable[[], Found]) -> Found | None:
        """A write that fails is a trouble, and tried again. What is fenced learns it where it writes."""
        try:
            done = act()
        except Fenced:
            return None
        except NosyncError as error:
            self.troubles.met("lease", error)
            return None
        self.troubles.over("lease")
        return done
