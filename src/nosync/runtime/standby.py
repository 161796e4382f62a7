"""Standing by: ready to go on as soon as the run that leads is no more.

Promise: everything that a start can do ahead is done (Spark is up, the program is compiled and checked against the history, the state is
fetched as it comes), and nobody is fenced before the lease of the run that leads is over (see `model.lease`). Of several that stand by, one
takes over; the others stand by for that one.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from nosync.journal.names import RUNS, STANDBYS, lease_name, newest_generation, standby_name
from nosync.model.errors import Conflict, NosyncError, OutcomeUnknown, Unavailable
from nosync.model.lease import ANNOUNCE_SECONDS, LOOK_SECONDS, Lease, Standby, Watch
from nosync.model.run import Runner, this_process
from nosync.model.store import Remote, Store
from nosync.recovery.check import is_whole
from nosync.recovery.following import Follower
from nosync.runtime.change import OnChange
from nosync.runtime.program import Program
from nosync.runtime.starting import Starting, check_start
from nosync.runtime.warm_up import WarmUp
from nosync.store.disk import LocalDisk

FOLLOW_SECONDS = 5.0
AGAIN_SECONDS = 1.0


class Begin(Protocol):
    """As `starting.begin`, for what is started here; `Conflict` where another run was first."""

    def __call__(self, *, follows: int) -> Starting: ...


def stand_by(
    begin: Begin, program: Program, home: Path, shards: int | None, remote: Remote | None, on_change: OnChange, detached: bool
) -> Starting:
    """Blocks until this process leads. What speaks against that is raised at once."""
    disk, runner, log = LocalDisk(home.absolute()), this_process(time.time()), logging.getLogger(f"nosync.{program.name}")
    chain = check_start(program, disk, remote, shards, on_change, detached, runner.boot)
    watching, warm_up = Watching(remote or disk, runner, log), WarmUp(program, chain.image(), disk.root, log)
    try:
        while True:
            follower = Follower(disk, remote, partial(is_whole, disk.root)) if remote is not None else None
            with Following(follower, log):
                generation = watching.wait()
            log.info("taking over")
            warm_up.end()
            try:
                starting = begin(follows=generation)
            except (Unavailable, OutcomeUnknown) as error:
                log.warning("could not take over, standing by again: %s", error.message)
                watching.sleep(AGAIN_SECONDS)
            except Conflict:
                if not watching.is_followed(generation):
                    raise
            else:
                watching.leave()
                return starting
    except BaseException:
        watching.leave()
        raise


class Following:
    """The thread of a follower. Leaving it waits for nothing: what is on its way may still come."""

    def __init__(self, follower: Follower | None, log: logging.Logger) -> None:
        self.follower, self.log = follower, log
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        if self.follower is not None:
            threading.Thread(target=self._run, args=(self.follower,), name="nosync following", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        if self.follower is not None:
            self.follower.stop()

    def _run(self, follower: Follower) -> None:
        while not self._stopping.is_set():
            try:
                if count := follower.step():
                    self.log.info("standing by: fetched %d files", count)
            except NosyncError as error:
                self.log.info("standing by, cannot follow: %s", error.message)
            self._stopping.wait(FOLLOW_SECONDS)


@dataclass
class Watching:
    """Announces itself, and looks at the lease of whoever leads. `clock` never goes back."""

    store: Store
    runner: Runner
    log: logging.Logger
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    beat: int = 0
    announced_at: float = float("-inf")
    generation: int | None = None
    watch: Watch = field(default_factory=Watch)

    def wait(self) -> int:
        """The generation of the newest run, once that has lost its lease. A store that does not answer is asked again."""
        while True:
            try:
                if self.step():
                    assert self.generation is not None
                    return self.generation
            except (Unavailable, OutcomeUnknown) as error:
                self.watch.blind()
                self.log.info("standing by, cannot see the lease: %s", error.message)
            self.sleep(self.pause())

    def step(self) -> bool:
        """One look: whether the newest run has lost its lease, and nobody has followed it."""
        self._announce()
        if self.generation is None:
            self._turn_to(self.newest())
        if self.generation == 0:
            return True
        begun = self.clock()
        content = self.store.read(lease_name(self.generation or 0))
        if not self.watch.over(content, begun, self.clock()):
            return False
        newest = self.newest()
        if newest == self.generation:
            return True
        self._turn_to(newest)
        return False

    def pause(self) -> float:
        """Until the next look; the lease may be over before that."""
        over_at = self.watch.over_at
        left = LOOK_SECONDS if over_at is None else over_at - self.clock()
        return min(LOOK_SECONDS, max(left, 0.01))

    def newest(self) -> int:
        return newest_generation(self.store.sizes(RUNS))

    def is_followed(self, generation: int) -> bool:
        """Whether another run has come after, or may have: a store that does not answer is asked again."""
        try:
            return self.newest() != generation
        except (Unavailable, OutcomeUnknown):
            return True

    def _turn_to(self, generation: int) -> None:
        self.generation, self.watch = generation, Watch()
        lease = Lease.from_bytes(self.store.read(lease_name(generation))) if generation else None
        who = f"process {lease.process} on {lease.host}" if lease else f"the run of generation {generation}"
        self.log.info("standing by: %s leads" if generation else "standing by: nobody has run the flow yet", *[who] * bool(generation))

    def _announce(self) -> None:
        now = self.clock()
        if now - self.announced_at >= ANNOUNCE_SECONDS:
            self.announced_at, self.beat = now, self.beat + 1
            self.store.replace(standby_name(self.runner.nonce), Standby(self.runner.process, self.runner.host).announcement(self.beat))

    def leave(self) -> None:
        """Stands by no more, until the next look. Where that cannot be said, the silence will say it."""
        self.announced_at = float("-inf")
        try:
            self.store.delete(standby_name(self.runner.nonce))
        except NosyncError as error:
            self.log.info("%s: %s", STANDBYS, error.message)
