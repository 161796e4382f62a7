"""Threads for what runs behind the stream. Each duty has one: it works while there is something to do, waits for news when there is
not, and backs off when its tier fails.

A failing tier stops nothing but its own safe point: it is tried again until it works, and says meanwhile why it stands still. `Fenced`,
and a sink that
refuses an epoch, end the run.
"""

import logging
import threading
import time
from collections.abc import Callable

from nosync.duties.upkeep import Duty, Upkeep
from nosync.journal.journal import Journal
from nosync.model.errors import Corrupt, Failed, Fenced, Internal, NosyncError, OutcomeUnknown, Unavailable
from nosync.model.safety import Problem
from nosync.recovery.suspicion import suspect

# How long a duty lets news gather before it acts: many epochs then share one fsync or one object.
LINGER_SECONDS = {"host": 0.1, "records": 0.2, "layers": 0.1, "release": 0.0, "tidy": 1.0}
IDLE_SECONDS = 0.3
BACK_OFF_SECONDS = (0.2, 5.0)
log = logging.getLogger("nosync")


class Tending:
    """The duties of a run, each in its thread."""

    def __init__(self, journal: Journal, upkeep: Upkeep, end: Callable[[NosyncError], None], clock: Callable[[], float]) -> None:
        self.journal, self.upkeep, self.end, self.clock = journal, upkeep, end, clock
        self.started = clock()
        self._stopping = threading.Event()
        self._news = 0
        duties = upkeep.duties()
        self._busy = dict.fromkeys(duties, True)
        self._threads = [threading.Thread(target=self._tend, args=duty, name=f"nosync {duty[0]}", daemon=True) for duty in duties.items()]
        self._threads.append(threading.Thread(target=self._sweep, name="nosync sweep", daemon=True))
        for thread in self._threads:
            thread.start()

    def _tend(self, name: str, duty: Duty) -> None:
        pause = BACK_OFF_SECONDS[0]
        while not self._stopping.is_set():
            try:
                self._busy[name] = True
                did = duty()
                self.upkeep.solved(name)
                pause = BACK_OFF_SECONDS[0]
                self._busy[name] = did
            except (Unavailable, OutcomeUnknown, Corrupt) as error:
                self._trouble(name, error)
                self._stopping.wait(pause)
                pause = min(pause * 2, BACK_OFF_SECONDS[1])
                continue
            except (Fenced, Failed) as error:
                return self.end(error)
            except Exception as error:
                failure = Internal(f"{name}: {type(error).__name__}: {error}", hint="This is a bug of nosync: please report it.")
                failure.__cause__ = error
                return self.end(failure)
            self._rest(name, did)

    def _rest(self, name: str, did: bool) -> None:
        """After work: others may have something to do now. Without: until there is news."""
        with self.journal.changed:
            if did:
                self._news += 1
                self.journal.changed.notify_all()
            else:
                seen = self.journal.number, self._news
                self.journal.changed.wait_for(
                    lambda: (self.journal.number, self._news) != seen or self._stopping.is_set(), timeout=IDLE_SECONDS
                )
        self._stopping.wait(LINGER_SECONDS[name])

    def _trouble(self, name: str, error: NosyncError) -> None:
        if isinstance(error, Corrupt):
            suspect(self.upkeep.disk, error)
        if self.upkeep.troubled(name, Problem(str(error).replace("\n", " "), self.clock())):
            log.warning("%s: %s", name, error)

    def _sweep(self) -> None:
        """Once after the start: earlier runs may have left files that nobody needs."""
        try:
            self.upkeep.clear_beginnings(self.started)
            self.upkeep.look_for_orphans()
        except NosyncError as error:
            log.warning("sweeping: %s", error)

    def wake(self) -> None:
        with self.journal.changed:
            self.journal.changed.notify_all()

    def settled(self) -> bool:
        """Whether every tier has everything, and every sink too."""
        image = self.journal.image
        tiers = self.upkeep.standings()
        return all(tier.epoch == image.epoch for tier in tiers) and self.released()

    def released(self) -> bool:
        return all(epoch >= self.journal.image.epoch for epoch in self.upkeep.releaser.delivered.values())

    def drain(self, seconds: float) -> bool:
        """Waits until everything is settled, at most so long, and not for a tier in trouble. What sinks have is recorded then, so that
        the next run does not deliver it again.
        """
        until = time.monotonic() + seconds
        self._wait(self.settled, until)
        try:
            self.journal.flush()
        except NosyncError as error:
            log.warning("the last releases are not recorded: %s", error)
        self._wait(lambda: all(tier.number == self.journal.number for tier in self.upkeep.standings()), until)
        return self.settled()

    def _wait(self, done: Callable[[], bool], until: float) -> None:
        while not done() and not self.upkeep.problems and self.journal.fenced is None and time.monotonic() < until:
            self.wake()
            self._stopping.wait(0.01)

    def stop(self) -> None:
        self._stopping.set()
        self.wake()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
