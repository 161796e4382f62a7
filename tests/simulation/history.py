"""One seeded history: processes that start, work, are killed, or are taken for dead and go on all the same; hosts that restart; disks that
are full or lost; links that are cut; sinks that stall. Every promise is checked as it goes.
"""

from __future__ import annotations

import random
from contextlib import suppress
from functools import partial
from typing import Any
from unittest.mock import patch

from nosync.journal.names import run_name
from nosync.model.errors import Corrupt, Fenced, Invalid
from nosync.model.retention import Retention
from nosync.recovery.restore import Recovered
from nosync.recovery.suspicion import suspect
from nosync.state.spine import plan_merge

from .adversities import PASSING, Adversities
from .ending import check_end, come_to_rest
from .keeping import Coarse, Reader, look_at_readers, some_ladder
from .life import Life
from .parsing import parsed_once
from .places import Away, File, Host, Link, facts_of
from .program import Sink
from .promises import Promises
from .read_back import look_back, read_back
from .rot import rot
from .sources import Lasting
from .standing_by import StandingBy
from .world import Broken, Crash, World

NARROW = partial(plan_merge, fan_in=3, width=2, floor_rows=1)


class History:
    """A world with one flow in it. `life` is the process that was started last; `lives` are all that still go on, each a `kind`."""

    kind = Life

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.world.newest = self.generation
        chance = self.world.random
        self.host = Host(self.world, "boot 0")
        self.hosts = [self.host]
        self.remote = Away(folder=chance.random() < 0.4) if chance.random() < 0.7 else None
        self.lasting, self.wall = Lasting(), 0.0
        self.written: dict[str, list[int]] = {}
        self.dice = chance.random() < 0.3
        releases = chance.choice(("safe", "computed")), "safe" if self.dice else chance.choice(("safe", "computed"))
        self.sinks = {name: Sink(release, chance.random() < 0.5) for name, release in zip(("sink", "other"), releases, strict=True)}
        self.trims, self.roll, self.patience = chance.random() < 0.5, chance.choice((3, 6, 20, 1000)), chance.choice((0.0, 0.0, 1.0))
        self.starts = self.newest = self.boots = 0
        self.standing_by = StandingBy(self)
        self.places: dict[int, Host] = {}  # where the processes were started
        self.life: Life | None = None
        self.lives: list[Life] = []
        self.promises = Promises(self)
        self.rotten = self.repaired = False
        self.rule: Retention | None = chance.choice((None, Coarse(1, 1000), Coarse(2, 3), Coarse(6, 4)))
        if seed % 7 == 5:
            self.rule = some_ladder(random.Random(seed))
        self.readers: list[Reader] = []
        self.at_once, self.erased = seed % 3 * 8 + 1, 0  # layers that are given up in one record, and those that are gone by now
        self.slow = ("", "layers", "host", "merger", "tidy")[seed % 5]  # this duty has to wait for long
        self.rates = chance.choice((0.0, 0.02, 0.1)), chance.choice((0.0, 0.01, 0.03)), chance.choice((0.0, 0.02, 0.1, 0.3))
        self.pace = 3 if self.rates[2] else 1  # pieces of steps, or whole ones
        self.world.late_writes = chance.random() < 0.5
        self.restless = chance.choice((0.02, 0.02, 0.15))  # how often a process is taken for dead and goes on all the same
        self.rough = chance.choice((0.0, 0.02, 0.08, 0.2))  # how often links are cut, disks full, sinks down
        self.world.outages = 0.05 * self.rough
        self.adversities = Adversities(self)

    def generation(self) -> int:
        """The newest on any tier. Asked for with every operation, so it is looked for from where it was last: each run takes the next."""
        if not self.world.runs_changed:
            return self.newest
        self.world.runs_changed = False
        tiers: list[Any] = [host.disk.files for host in self.hosts] + ([self.remote.files] if self.remote else [])
        while found := [files[run_name(self.newest + 1)] for files in tiers if run_name(self.newest + 1) in files]:
            self.newest += 1
            self._taken_over(found)
        while self.newest and not any(run_name(self.newest) in files for files in tiers):
            self.newest -= 1
        return self.newest

    def _taken_over(self, found: list[Any]) -> None:
        """One that was slow to start may be the newest all the same, on another host than the one that was started last."""
        texts = [file.content if isinstance(file, File) else file for file in found]
        process = next((int(known["process"]) for text in texts if (known := facts_of(text))), 0)
        host = self.places.get(process, self.host)
        if host is not self.host:
            self.host = host
            self.promises.expect("site")

    def another_boot(self) -> str:
        """No two hosts, and no two lives of one, have the same."""
        self.boots += 1
        return f"boot {self.boots}"

    def wall_clock(self) -> float:
        """Seconds as people count them: now and then they jump."""
        return self.wall + self.world.seconds

    def run(self, steps: int) -> None:
        """Trouble all along; then a last run without any, which must bring everything home."""
        world = self.world
        folding = patch.multiple("nosync.state.folding", LEAVES=3, FEW_VERSIONS=2, plan_merge=NARROW)
        giving_up = patch.multiple("nosync.duties.compacting", AT_ONCE=self.at_once, EPOCHS_BETWEEN=1)
        with world.tasks.locks(), parsed_once(), folding, giving_up:
            try:
                world.faults, world.crashes, world.switches = self.rates
                for _ in range(steps):
                    self.tick()
                world.faults, world.crashes = min(world.faults, 0.02), min(world.crashes, 0.005)
                for _ in range(steps // 2):
                    self.tidy_up()
                world.calm()
                read_back(self)
                come_to_rest(self)
            finally:
                for life in self.lives:
                    life.kill()

    def tick(self) -> None:
        chance = self.world.random
        if chance.random() < 0.4:
            self.lasting.events.append(chance.randrange(100))
        self.adversities.now_and_then()
        self.standing_by.now_and_then()
        if chance.random() < 0.01:
            self.adversities.fail(self.host)
        look_back(self)
        look_at_readers(self, 0.05)
        others = [life for life in self.lives if life is not self.life]
        if others and chance.random() < 5 * self.restless:
            self.act(chance.choice(others), chance.choice((1, 4, 16)))
        if self.life is not None and chance.random() < self.restless:
            self.world.events["taken for dead"] += 1
            self.adversities.leave(chance.random() < 0.5)
        if self.life is None:
            self.start()
        self.act(self.life, self.pace)

    def start(self) -> None:
        """Another process begins to take the flow over."""
        self.life = self.make_life()
        self.lives.append(self.life)

    def make_life(self, host: Host | None = None, follows: int | None = None) -> Life:
        return self.kind(self, host or self.host, self.link(host or self.host), follows)

    def link(self, host: Host) -> Link | None:
        return Link(self.world, self.remote, host) if self.remote is not None else None

    def act(self, life: Life | None, bursts: int) -> None:
        for _ in range(bursts):
            if life is not None and life in self.lives:
                self.guarded(life, life.burst)

    def guarded(self, life: Life, act: Any) -> Any:
        """What fails is tried again later; a crash takes the process; one that is fenced ends what it is at, and nothing more."""
        result = None
        try:
            result = act()
        except PASSING:
            if not life.ready:
                self.drop(life)
        except Fenced as error:
            if life.journal is not None and life.current:
                if "Start again" not in error.hint:
                    raise Broken("fenced by nobody") from error
                self.world.events["in the way"] += 1
            life.ending = True
        except Invalid as error:
            raise Broken(f"refused: {error}") from error
        except Corrupt as error:
            self.met_damage(life, error)
        except Crash:
            self.drop(life)
            self.after_crash(life)
        except Broken as error:  # a fenced run may find its files gone, but must not tell anybody anything
            if life.current or life.journal is None or "deliver" in str(error):
                raise
            self.drop(life)
        if life.ending and not life.tasks:
            self.drop(life)
        self.promises.note(life)
        return result

    def met_damage(self, life: Life, error: Corrupt) -> None:
        if life.ready and not life.current:
            return self.drop(life)
        if life.ready and self.rotten:
            with suppress(Crash, *PASSING):
                suspect(life.disk, error)
        elif "Start again" not in error.hint and not self.rotten:
            raise Broken(str(error)) from error
        return self.drop(life)

    def drop(self, life: Life) -> None:
        """The process is gone."""
        life.kill()
        life.ready = False
        self.lives = [other for other in self.lives if other is not life]
        self.life = None if self.life is life else self.life

    def after_crash(self, life: Life) -> None:
        chance = self.world.random
        if chance.random() < 0.5:
            self.adversities.fail(life.host)
        if chance.random() < 0.1:
            rot(self, life.host)

    def tidy_up(self) -> None:
        """Every thread in turn, still under faults: what is only done when there is time comes to be done."""
        if self.life is None:
            self.start()
        life = self.life
        assert life is not None
        self.world.seconds += 1.0
        for name in [name for name in life.threads if name != "sweep" or self.world.random.random() < 0.1]:
            for _ in range(30):
                if life in self.lives and life._can_go_on(name):
                    self.guarded(life, lambda name=name: life.go_on(name))
                if name not in life.tasks:
                    break
        look_at_readers(self, 0.2)

    def check_recovery(self, done: Recovered) -> None:
        self.promises.check_recovery(done)

    def check_state(self, life: Life) -> None:
        self.promises.check_state(life)

    def check_end(self, life: Life) -> None:
        check_end(self, life)

    def check_trim(self, life: Life, slice: dict[str, Any]) -> None:
        self.promises.check_trim(life, slice)


def simulate(seed: int, steps: int = 60) -> World:
    """Raises `Broken` where the contract is not kept."""
    history = History(seed)
    history.run(steps)
    return history.world
