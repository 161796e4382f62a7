"""The thread of a run: recovers, then computes epoch after epoch, until it is asked to stop or cannot go on.

Others wait for it: `ready` for the end of recovery, `wait_for` for anything. An error of any phase ends the loop and reaches all of them.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from nosync.duties.tending import Tending
from nosync.model.errors import Conflict, NosyncError, Unavailable, unexpected
from nosync.model.events import Event, Kind
from nosync.model.progress import Progress
from nosync.model.status import Live, Phase, Recovery
from nosync.observe.news import PROGRESS, logger
from nosync.runtime.footprint import Footprints
from nosync.runtime.joining import Joining
from nosync.runtime.listening import Listeners
from nosync.runtime.opener import Opener
from nosync.runtime.pacing import Pacing
from nosync.runtime.reporting import Reporter, ended
from nosync.runtime.starting import Starting, started_facts
from nosync.runtime.stepping import Stepping
from nosync.runtime.takeover import taken_over
from nosync.runtime.trigger import Trigger

IDLE_SECONDS = 0.01
IDLE_SHARE = 0.015  # of a core, for looking whether there is something to do, and waking up for it
LONGEST_IDLE_SECONDS = 1.0
ANNOUNCED_IDLE_SECONDS = 0.1  # where sources say themselves what arrives
NEWEST_LOOK = 0.2  # how much the last look counts among those before, of what a look takes
STALL_SECONDS = (0.2, 5.0)
DRAIN_SECONDS = 30.0
KEPT_PROGRESS = 1000
IDLE = "Waiting for data to arrive"


def _nobody() -> None:
    """Whom a source wakes that no run reads."""


class Stopped(Exception):
    """Somebody asked for the end in the middle of a recovery."""


class Loop:
    """Owns what a run has in threads."""

    def __init__(self, starting: Starting, trigger: Trigger) -> None:
        self.starting, self.trigger = starting, trigger
        self.log = logger(starting.program.name)
        self.pacing = Pacing(trigger.latency, starting.program.sources) if trigger.latency is not None else None
        self.begun_at = time.monotonic()
        self.idle_reported = False
        self.stepping: Stepping | None = None
        self.tending: Tending | None = None
        self.opener: Opener | None = None
        self.phase: Phase = "starting"
        self.message = "Starting"
        self.recovery: Recovery | None = None
        self.progress: deque[Progress] = deque(maxlen=KEPT_PROGRESS)
        self.changed = threading.Condition()
        self.stopping = False
        self.active = True
        self.asked = self.looked = self.exhausted = 0  # looks for input: asked for, begun, and ended without any
        self.look_seconds, self.rested_at = 0.0, 0.0
        self.epoch_since = True  # since the last pause
        self.announced = all(source.on_arrival is not None for source in starting.program.sources.values())
        self.error: NosyncError | None = None
        self.listeners = Listeners(starting.program.name, starting.program.listeners)
        self.footprints = Footprints(starting.program.spark, starting.journal, starting.disk)
        self.reporter = Reporter(self.live, self._measure, starting.journal, starting.disk, starting.troubles)
        self.thread = threading.Thread(target=self._run, name=f"nosync {starting.program.name}", daemon=True)
        self.thread.start()

    def live(self) -> Live:
        """What the run knows of itself now."""
        upkeep = self.stepping.upkeep if self.stepping else None
        tiers, sinks = (tuple(upkeep.standings()), dict(upkeep.releaser.delivered)) if upkeep else ((), {})
        estimate, troubles = upkeep.estimate if upkeep else None, self.starting.troubles.all()
        standbys, next_at = self.starting.leading.standbys, upkeep.releaser.next_at() if upkeep else {}
        joining = self.joining
        recovery = joining.progress if joining is not None else self.recovery
        message = f"{self.message}; {recovery}" if joining is not None and self.phase == "running" else self.message
        facts = self.phase, message, tiers, sinks, troubles, recovery, estimate, standbys, next_at, self.footprints.last
        return Live(self.starting.run, *facts)

    def _measure(self) -> None:
        """What the run takes, once it computes epochs."""
        if self.stepping is not None and self.active:
            try:
                self.footprints.measure(self.starting.clock())
            except NosyncError as error:
                self.starting.troubles.met("footprint", error)
            self.stepping.footprint = self.footprints.last

    @property
    def joining(self) -> Joining | None:
        """What has yet to join the epochs of this run."""
        return self.stepping.joining if self.stepping is not None else None

    def joined(self) -> Stepping:
        """Waits until all of the program takes part in the epochs; raises why it never will."""
        stepping = self.ready()
        self.wait_for(lambda: stepping.joining is None or not self.active)
        if stepping.joining is not None:
            words = "the run was stopped before what is new in the program had its past"
            raise self.error or Conflict(words, hint='Start the flow again, with on_change="rebuild".')
        return stepping

    def ready(self) -> Stepping:
        """Waits until the state is together; raises why it never will be."""
        self.wait_for(lambda: self.stepping is not None or not self.active)
        if self.stepping is None:
            raise self.error or Conflict("the run was stopped before it had recovered", hint="Start the flow again.")
        return self.stepping

    def having(self, view: str) -> Stepping:
        """Waits until the home has the view's past, where it was added to the program."""
        stepping = self.ready()
        return self.joined() if stepping.lacks(view) else stepping

    def wait_for(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        with self.changed:
            return self.changed.wait_for(condition, timeout=seconds)

    def ask_to_look(self) -> int:
        """Input is looked for at once, if nothing else is under way; `exhausted` comes to the number given once there is no more."""
        with self.changed:
            self.asked += 1
            self.changed.notify_all()
            return self.asked

    def exhaust(self) -> bool:
        """Waits until a look finds nothing that begins after this; False where the run ends before."""
        number = self.ask_to_look()
        self.wait_for(lambda: self.exhausted >= number or not self.active)
        return self.exhausted >= number

    def _wake(self) -> None:
        self.ask_to_look()

    def _announce_to(self, wake: Callable[[], None]) -> None:
        for source in self.starting.program.sources.values():
            if source.on_arrival is not None:
                source.on_arrival(wake)

    def ask_to_stop(self) -> None:
        with self.changed:
            self.stopping = True
            self.changed.notify_all()

    def owns(self, thread: threading.Thread) -> bool:
        """Whether a thread is one of the run's: it must not wait for the end of the run."""
        behind = [*(self.tending.threads if self.tending else ()), *([self.opener.thread] if self.opener else ())]
        behind.append(self.listeners.thread)
        return thread is self.thread or thread in behind

    def _end(self, error: NosyncError) -> None:
        """Something behind the stream cannot go on."""
        with self.changed:
            if self.active:  # what comes back after the end changes nothing any more
                self.error = self.error or error
        self.ask_to_stop()

    def _run(self) -> None:
        try:
            stepping, opener = self._recover()
            self._announce_to(self._wake)
            self._work(stepping, opener)
        except Stopped:
            pass
        except NosyncError as error:
            self.error = self.error or error
            self.starting.troubles.damage(self.starting.disk, error)
        except BaseException as error:
            self.error = self.error or unexpected("stream", error)
        finally:
            self._end_run()

    def _recover(self) -> tuple[Stepping, Opener]:
        self.phase = "recovering"
        stepping = self.starting.recover(self._report)
        if stepping.joining is not None:
            self.log.info("%s; the rest goes on meanwhile", stepping.joining.progress)
            stepping.joining.start()
        tending = Tending(stepping.journal, stepping.upkeep, self._end)
        opener = Opener(stepping.epochs, stepping.troubles)
        with self.changed:
            self.stepping, self.tending, self.opener = stepping, tending, opener
            self.phase, self.recovery = "running", None
            self.changed.notify_all()
        self._tell("started", facts=started_facts(self.starting, time.monotonic() - self.begun_at))
        return stepping, opener

    def _report(self, recovery: Recovery) -> None:
        if self.stopping:
            raise Stopped
        self.recovery, self.message = recovery, f"Recovering: {recovery}"
        if self.starting.image.epoch:  # a new home has nothing to come back from
            self.log.info("recovering: %s", recovery, extra=PROGRESS)

    def _work(self, stepping: Stepping, opener: Opener) -> None:
        pause = STALL_SECONDS[0]
        while not self.stopping:
            begun = time.monotonic()
            try:
                if not self._round(stepping, opener) and self.trigger.once:
                    return
                stepping.troubles.over("epoch")
                pause = STALL_SECONDS[0]
            except Unavailable as error:
                self._stall(error, pause)
                pause = min(2 * pause, STALL_SECONDS[1])
                continue
            self._pause(begun)

    def _round(self, stepping: Stepping, opener: Opener) -> bool:
        """One epoch, or the news that there is nothing to do."""
        looked = self.looked = self.asked
        if self._held_back(stepping):
            return True
        if not self.message.startswith("Stalled"):
            self.message = "Processing"
        waited_for = stepping.joining
        if self.pacing is not None:  # which opens each epoch as late as it can
            done = self._paced(stepping, self.pacing)
        else:
            done = stepping.step(opener)
        with self.changed:
            if done is None:
                self.exhausted = looked if waited_for is None else self.exhausted
                self.message = IDLE
            else:
                self.progress.append(done)
                self.message, self.epoch_since = "Processing", True
            self.changed.notify_all()
        if done is not None:
            self._tell("progress", progress=done)
        elif not self.idle_reported:
            self._tell("idle")
        self.idle_reported = done is None
        if waited_for is not None and stepping.joining is None:
            self.log.info("%s", taken_over(stepping.takeover), extra=PROGRESS)
        return done is not None or waited_for is not None

    def _paced(self, stepping: Stepping, pacing: Pacing) -> Progress | None:
        pacing.begin()
        done = stepping.step()
        if done is not None:
            pacing.done(stepping.slices)
        return done

    def _tell(
        self, kind: Kind, progress: Progress | None = None, error: NosyncError | None = None, facts: Mapping[str, Any] | None = None
    ) -> None:
        starting = self.starting
        self.listeners.tell(
            Event(kind, starting.program.name, starting.run, starting.clock(), starting.image.epoch, progress, error, facts or {})
        )

    def _stall(self, error: Unavailable, seconds: float) -> None:
        """The epoch cannot be written now: it is tried again until it can."""
        self.message = f"Stalled: {error.message}"
        self.starting.troubles.met("epoch", error)
        self.wait_for(lambda: self.stopping, seconds)

    def _held_back(self, stepping: Stepping) -> bool:
        """The only thing that the stream waits for: so much is not yet on a tier that losing it would be too much."""
        tier = stepping.upkeep.policy.waits_for(stepping.upkeep.standings())
        if tier is not None:
            self.message = f"Waiting: {tier.behind:,} bytes have yet to reach the tier that survives the loss of the {tier.survives}"
            self.wait_for(lambda: self.stopping, IDLE_SECONDS)
        return tier is not None

    def _pause(self, begun: float) -> None:
        between = self.pacing.interval if self.pacing is not None else self.trigger.seconds
        rest = between - (time.monotonic() - begun)
        if rest > 0:
            self.wait_for(lambda: self.stopping, rest)
        if self.message == IDLE:
            idle = self._idle_seconds()
            self.wait_for(lambda: self.stopping or self.asked != self.looked, idle - max(rest, 0.0))

    def _idle_seconds(self) -> float:
        """Until the next look for input: all of them, with waking up for them, take a small share of a core."""
        before, self.rested_at = self.rested_at, time.thread_time()
        if not self.epoch_since:
            self.look_seconds += NEWEST_LOOK * (self.rested_at - before - self.look_seconds)
        self.epoch_since = False
        told = self.announced and self.joining is None
        return min(max(ANNOUNCED_IDLE_SECONDS if told else IDLE_SECONDS, self.look_seconds / IDLE_SHARE), LONGEST_IDLE_SECONDS)

    def _acknowledge(self, stepping: Stepping) -> None:
        """What has become safe since the last epoch. A source that cannot hear it now learns it from the next start."""
        try:
            stepping.epochs.acknowledge()
        except BaseException as error:
            stepping.troubles.met("acknowledge", error)

    def _end_run(self) -> None:
        """Whatever goes wrong on the way, nobody waits for the run any more after this."""
        try:
            self._close()
        except NosyncError as error:
            self.error = self.error or error
        except BaseException as error:
            self.error = self.error or unexpected("stopping", error)
        finally:
            self._conclude()

    def _close(self) -> None:
        with ExitStack() as closing:  # from the last to the first, each whatever became of those before
            for source in self.starting.program.sources.values():
                closing.callback(source.close)
            closing.callback(self._close_sinks)
            closing.callback(self._announce_to, _nobody)
            if self.stepping is not None and self.opener is not None and self.tending is not None:
                closing.callback(self._acknowledge, self.stepping)
                closing.callback(self.tending.stop)
                closing.callback(self.opener.stop)
                if self.stepping.joining is not None:
                    self.stepping.joining.stop()
                closing.callback(self.stepping.close)  # a copy under way is given up, and nobody waits for it
            if self.tending is not None and self.error is None:
                self.phase, self.message = "stopping", "Stopping"
                self.tending.drain(DRAIN_SECONDS)

    def _close_sinks(self) -> None:
        for sink in self.starting.outlet.close():
            words = f'sink "{sink}" was not closed: it has not come back from the epoch that it was given'
            self.starting.troubles.met(f"sink {sink}", Unavailable(words, hint="The next run delivers that epoch again."))

    def _conclude(self) -> None:
        with self.changed:
            self.active = False
            self.phase, self.message = ("stopped", "Stopped") if self.error is None else ("failed", f"Failed: {self.error.message}")
            self.changed.notify_all()
        self.reporter.stop()
        self.starting.journal.fence(ended())
        if self.starting.unshared is not None:
            self.starting.unshared.close()
        self.starting.leading.stop()
        self._tell("terminated", error=self.error)
        self.listeners.stop()
