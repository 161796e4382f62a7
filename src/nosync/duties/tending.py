"""Threads for what runs behind the stream. Each duty has one: it works while there is something to do, waits for news when there is
not, and backs off when it fails. Sinks are called when there is something for them: those that nothing changes for sleep on.

A failing tier stops nothing but its own safe point, a failing sink nothing but itself: both are tried again until they work, and say
meanwhile why they stand still. `Fenced`, a sink that refuses an epoch for good, and whatever nobody foresaw end the run: no thread ends
without a word.
"""

import threading
import time
from collections.abc import Callable

from nosync.duties.upkeep import Duty, Upkeep
from nosync.journal.journal import Journal
from nosync.model.errors import Corrupt, Failed, Fenced, NosyncError, OutcomeUnknown, Unavailable, unexpected

# How long a duty lets news gather before it acts: many epochs then share one fsync or one object. Sinks do not wait, nor does an fsync
# that one of them waits for: epochs that come meanwhile share the next.
LINGER_SECONDS = {"host": 0.1, "records": 0.2, "layers": 0.1, "tidy": 1.0}
IDLE_SECONDS = 0.3
BACK_OFF_SECONDS = (0.2, 5.0)
JOIN_SECONDS = 5.0


class Tending:
    """The duties of a run, each in its thread."""

    def __init__(self, journal: Journal, upkeep: Upkeep, end: Callable[[NosyncError], None]) -> None:
        self.journal, self.upkeep, self.end = journal, upkeep, end
        self._stopping = threading.Event()
        self._news = 0
        self._calls = {f"sink {sink}": threading.Event() for sink in upkeep.releaser.sinks}
        duties = {**upkeep.duties(), **({"release": self._call_sinks} if self._calls else {})}
        self.threads = [threading.Thread(target=self._tend, args=duty, name=f"nosync {duty[0]}", daemon=True) for duty in duties.items()]
        self.threads.append(threading.Thread(target=self._do, args=("sweep", self._clean_up), name="nosync sweep", daemon=True))
        for thread in self.threads:
            thread.start()

    def _tend(self, name: str, duty: Duty) -> None:
        seen = self._seen()
        while (did := self._do(name, duty)) is not None:
            self._rest(name, did, seen)
            seen = self._seen()

    def _seen(self) -> tuple[int, int]:
        """What a duty knows of that begins now: what comes while it is at work is news."""
        return self.journal.number, self._news

    def _call_sinks(self) -> bool:
        for sink in self.upkeep.releaser.waiting():
            self._calls[f"sink {sink}"].set()
        return False

    def _do(self, name: str, duty: Duty) -> bool | None:
        """Tries until it works, and says whether there was something to do; None once the run ends."""
        pause = BACK_OFF_SECONDS[0]
        while not self._stopping.is_set():
            try:
                did = duty()
            except (Unavailable, OutcomeUnknown, Corrupt) as error:
                self._failed(name, error, pause)
                pause = min(pause * 2, BACK_OFF_SECONDS[1])
            except (Fenced, Failed) as error:
                self.end(error)
                return None
            except BaseException as error:
                failure = unexpected(name, error)
                self.upkeep.troubles.met(name, failure)
                self.end(failure)
                return None
            else:
                self.upkeep.troubles.over(name)
                return did
        return None

    def _failed(self, name: str, error: NosyncError, pause: float) -> None:
        self.upkeep.troubles.damage(self.upkeep.disk, error)
        self.upkeep.troubles.met(name, error)
        self._stopping.wait(pause)

    def _rest(self, name: str, did: bool, seen: tuple[int, int]) -> None:
        """After work: others may have something to do now. Without: until there is news, or a call."""
        call = self._calls.get(name)
        if did:
            with self.journal.changed:
                self._news += 1
                self.journal.changed.notify_all()
        elif call is not None:
            call.wait()
            call.clear()
        else:
            with self.journal.changed:
                self.journal.changed.wait_for(lambda: self._seen() != seen or self._stopping.is_set(), timeout=IDLE_SECONDS)
        self._linger(name, LINGER_SECONDS.get(name, 0.0))

    def _linger(self, name: str, seconds: float) -> None:
        if name != "host" or not self.upkeep.releaser.hasty:
            self._stopping.wait(seconds)
        else:
            with self.journal.changed:
                self.journal.changed.wait_for(lambda: self._stopping.is_set() or self.upkeep.releaser.awaits("host"), timeout=seconds)

    def _clean_up(self) -> bool:
        """Earlier runs may have left files that nobody needs."""
        self.upkeep.clear_beginnings()
        return self.upkeep.look_for_orphans() > 0

    def wake(self) -> None:
        with self.journal.changed:
            self.journal.changed.notify_all()

    def caught_up(self) -> bool:
        """Whether every tier has everything, and every sink too."""
        return all(tier.epoch == self.journal.image.epoch for tier in self.upkeep.standings()) and self.released()

    def hurry(self) -> None:
        """Sinks get what there is now, whatever their pace."""
        self.upkeep.releaser.hurry()
        self._call_sinks()

    def released(self) -> bool:
        return all(epoch >= self.journal.image.epoch for epoch in self.upkeep.releaser.delivered.values())

    def _at_rest(self) -> bool:
        """Whether nothing more will come about soon: all is where it shall be, but for what stands still and what waits for that."""
        releaser, troubles = self.upkeep.releaser, self.upkeep.troubles
        tiers = all(tier.problem or tier.epoch == self.journal.image.epoch for tier in self.upkeep.standings())
        return tiers and all(troubles.problem(f"sink {sink}") or done >= releaser.due(sink) for sink, done in releaser.delivered.items())

    def drain(self, seconds: float) -> bool:
        """Waits until all have caught up, at most so long, and not for a tier or a sink in trouble. What sinks have is recorded then, so
        that the next run does not deliver it again.
        """
        until = time.monotonic() + seconds
        self.upkeep.releaser.hurry()
        self._wait(self._at_rest, until)
        self.upkeep.releaser.note()
        try:
            self.journal.flush()
        except NosyncError as error:
            self.upkeep.troubles.met("record of releases", error)
        self._wait(lambda: all(tier.problem or tier.number == self.journal.number for tier in self.upkeep.standings()), until)
        return self.caught_up()

    def _wait(self, done: Callable[[], bool], until: float) -> None:
        while not done() and self.journal.fenced is None and time.monotonic() < until:
            self.wake()
            self._stopping.wait(0.01)

    def stop(self, seconds: float = JOIN_SECONDS) -> None:
        """No duty begins anything after this. One that hangs in a call is left to it: what it does is what a killed run might have done."""
        self._stopping.set()
        self.wake()
        for call in self._calls.values():
            call.set()
        until = time.monotonic() + seconds
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
