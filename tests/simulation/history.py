"""One seeded history: runs that start, work, are killed, come back as zombies; hosts that restart; disks that are lost. Every promise
is checked as it goes.
"""

from __future__ import annotations

import json
from typing import Any

from nosync.journal.entries import Opened
from nosync.journal.names import run_name
from nosync.model.errors import Corrupt, Fenced, OutcomeUnknown, Unavailable
from nosync.recovery.restore import Recovered

from .life import Life
from .program import Broken, Lasting, Sink, events_of, expected
from .world import Away, Cache, Crash, World

PASSING = (Unavailable, OutcomeUnknown)


class History:
    """A world with one flow in it."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        chance = self.world.random
        self.disk = Cache(self.world)
        self.remote = Away(self.world) if chance.random() < 0.6 else None
        self.lasting = Lasting()
        self.sink = Sink(chance.choice(("safe", "computed")))
        self.trims = chance.random() < 0.5
        self.roll = chance.choice((3, 6, 20, 1000))
        self.boot, self.starts = "boot 0", 0
        self.claims: dict[str, int] = {}
        self.content: dict[int, str] = {}
        self.newest = self.newest_at_last_operation = 0
        self.life: Life | None = None
        self.zombies: list[Life] = []
        self.rates = (chance.choice((0.0, 0.02, 0.1)), chance.choice((0.0, 0.01, 0.03)), chance.choice((0.0, 0.0, 0.01, 0.03)))
        self.restless = chance.choice((0.02, 0.02, 0.15))  # how often a run is taken for dead and goes on all the same
        self.rotten = False
        plain = self.world.operation

        def noticing(place: str, name: str, act: Any) -> Any:
            self.newest_at_last_operation = self.generation()
            return plain(place, name, act)

        self.world.operation = noticing  # type: ignore[method-assign]
        self.world.interlude = self.interlude

    def generation(self) -> int:
        """The newest on any tier. Asked for with every operation, so it is looked for from where it was last: each run takes the next."""
        tiers = [self.disk.files, self.remote.files if self.remote else {}]
        while any(run_name(self.newest + 1) in files for files in tiers):
            self.newest += 1
        while self.newest and not any(run_name(self.newest) in files for files in tiers):
            self.newest -= 1
        return self.newest

    def run(self, steps: int) -> None:
        """Faults all along; then a last run without any, which must bring everything home."""
        self.world.faults, self.world.crashes, self.world.interludes = self.rates
        for _ in range(steps):
            self.tick()
        for _ in range(steps // 2):
            self.guarded(self.start if self.life is None else self.tidy_up)
        self.world.faults = self.world.crashes = self.world.interludes = 0.0
        self.life = self.life if self.world.random.random() < 0.5 else None
        self.settle()

    def tick(self) -> None:
        chance = self.world.random
        if chance.random() < 0.4:
            self.lasting.events.append(chance.randrange(100))
        if self.zombies and chance.random() < 5 * self.restless:
            self.zombie_acts()
        if chance.random() < 0.01:
            self.fail()
        if self.life is not None and chance.random() < self.restless:
            self.zombies.append(self.life)
            self.life = None
            if self.remote is not None and chance.random() < 0.5:
                self.move()
        self.guarded(self.start if self.life is None else self.life_acts)

    def guarded(self, act: Any) -> None:
        """A failing operation is retried later; a crash takes the run."""
        try:
            act()
        except PASSING:
            pass
        except Corrupt as error:
            if "Start again" not in error.hint:
                raise Broken(str(error)) from error
        except Crash:
            self.life = None
            if self.world.random.random() < 0.5:
                self.fail()
            if self.world.random.random() < 0.1:
                self.rot()

    def start(self) -> None:
        self.life = Life(self)

    def life_acts(self) -> None:
        assert self.life is not None
        try:
            self.life.act()
            self.note_claims(self.life)
        except Fenced as error:
            if self.generation() <= self.life.journal.generation:
                raise Broken("fenced by nobody") from error
            self.life = None

    def tidy_up(self) -> None:
        """All duties, still under faults: what is only done when there is time comes to be done."""
        assert self.life is not None
        try:
            for duty in self.life.upkeep.duties().values():
                duty()
            self.note_claims(self.life)
        except Fenced:
            self.life = None

    def zombie_acts(self) -> None:
        zombie = self.world.random.choice(self.zombies)
        try:
            for _ in range(self.world.random.choice((1, 4, 16))):
                zombie.act()
        except (Fenced, Crash):
            self.zombies.remove(zombie)
        except (*PASSING, Corrupt):
            pass
        except Broken as error:  # a fenced run may find its files gone, but must not tell anybody anything
            if "deliver" in str(error):
                raise
            self.zombies.remove(zombie)

    def interlude(self) -> None:
        """Another process takes the flow over in the middle of an operation of this one."""
        if self.life is None:
            return
        outer, self.life = self.life, None
        rates = self.world.faults, self.world.crashes, self.world.interludes
        self.world.faults = self.world.crashes = self.world.interludes = 0.0
        try:
            self.start()
            for _ in range(self.world.random.choice((2, 6, 30))):
                if self.life is not None:
                    self.life_acts()
        finally:
            self.world.faults, self.world.crashes, self.world.interludes = rates
            if self.life is not None:
                self.zombies.append(self.life)
            self.life = outer

    def fail(self) -> None:
        """The host restarts, or its disk is lost: no process there survives."""
        self.life, self.zombies = None, []
        self.boot = f"boot {self.world.operations}"
        if self.remote is not None and self.world.random.random() < 0.4:
            self.disk.wipe()
            self.expect("site")
        else:
            self.disk.restart()
            self.expect("host")

    def move(self) -> None:
        """The flow is taken over on another host, while the old one still runs: they share nothing but the remote."""
        self.disk = Cache(self.world)
        self.boot = f"boot {self.world.operations}"
        self.expect("site")

    def rot(self) -> None:
        """A layer vanishes from the home, one that the remote has or that can still be computed."""
        names = [name for name in self.disk.files if name.startswith("layers/")]
        there = self.remote.files if self.remote is not None else {}
        names = [name for name in names if name in there or not self.trims]
        if names:
            del self.disk.files[self.world.random.choice(names)]
            self.rotten = True

    def check_recovery(self, done: Recovered) -> None:
        """What was safe is taken from the log."""
        if done.missing_from and not self.rotten and done.missing_from <= self.claims.get("process", 0):
            raise Broken(f"epoch {done.missing_from} was missing although {self.claims} were safe")

    def expect(self, failure: str) -> None:
        """Only what was claimed to survive is asked for from here on."""
        promised = self.claims.get(failure, 0)
        self.claims = {kind: min(epoch, promised) for kind, epoch in self.claims.items()}
        delivered = max(self.sink.got, default=0)
        self.content = {epoch: text for epoch, text in self.content.items() if epoch <= max(promised, delivered)}

    def note_claims(self, life: Life) -> None:
        for kind, epoch in life.upkeep.safe().items():
            self.claims[kind] = max(self.claims.get(kind, 0), epoch)
        for epoch, entry in life.journal.image.opened.items():
            if epoch <= life.journal.image.epoch:
                self.content.setdefault(epoch, json.dumps(entry.slices))

    def check_state(self, life: Life) -> None:
        """What a run starts from is what was promised."""
        image = life.journal.image
        promised = max(self.claims.get("process", 0), max(self.sink.got, default=0))
        if image.last_opened < promised:
            raise Broken(f"epoch {promised} was promised or delivered; the flow is back at {image.epoch}, opened {image.last_opened}")
        if image.epoch < self.claims.get("process", 0):
            raise Broken(f"epoch {self.claims['process']} was safe; the flow is back at {image.epoch}")
        for entry in life.openings():
            known = self.content.get(entry.epoch)
            if known is not None and json.dumps(entry.slices) != known:
                raise Broken(f"epoch {entry.epoch} had {known} and now has {entry.slices}")

    def settle(self) -> None:
        """No more faults: the flow comes home, and everything adds up."""
        self.zombies = []
        for _ in range(50):
            if self.life is None:
                self.guarded(self.start)
        if self.life is None:
            raise Broken("the flow does not start any more")
        life = self.life
        try:
            life.journal.look()  # one that has nothing to append would never learn that another has taken over
            busy = True
            while busy:
                busy = life.epochs.step() is not None
                for duty in life.upkeep.duties().values():
                    busy = duty() or busy
                self.note_claims(life)
        except Fenced:
            self.life = None
            return self.settle()
        self.check_end(life)

    def check_end(self, life: Life) -> None:
        image = life.journal.image
        known = life.openings()
        self._check_input(known)
        if [entry.epoch for entry in known] != list(range(1, image.epoch + 1)):
            raise Broken(f"epochs {[entry.epoch for entry in known]} in the history, {image.epoch} computed")
        if max(self.sink.got, default=0) != image.epoch:
            raise Broken(f"the sink has {max(self.sink.got, default=0)} of {image.epoch} epochs")
        if set(life.upkeep.safe().values()) != {image.epoch}:
            raise Broken(f"safe points stand still: {life.upkeep.safe()} of {image.epoch}")
        if not self.trims:
            self._check_answers(life, known)

    def _check_input(self, known: list[Opened]) -> None:
        position = 0
        for entry in known:
            if "lasting" in entry.slices:
                slice = entry.slices["lasting"]
                if slice["first"] != position:
                    raise Broken(f"epoch {entry.epoch} takes events from {slice['first']} on, not from {position}")
                position = slice["last"]
        if position != len(self.lasting.events):
            raise Broken(f"{len(self.lasting.events) - position} events were never taken")

    def _check_answers(self, life: Life, known: list[Opened]) -> None:
        stored = {name: file.content for name, file in self.disk.files.items()} | (self.remote.files if self.remote else {})
        states = expected([events_of(entry, self.lasting, stored) for entry in known])
        image = life.journal.image
        for trace, at in (("totals", 0), ("parities", 1)):
            found = life.engine._state(trace, lambda name: image.covers(name, image.epoch))
            wanted = states[-1][at] if states else {}
            if {key: value for key, value in found.items() if value} != {key: value for key, value in wanted.items() if value}:
                raise Broken(f"{trace} is {found}, not {wanted}")
        before: dict[int, int] = {}
        for epoch, (_, after) in enumerate(states, start=1):
            change = {str(key): after.get(key, 0) for key in before.keys() | after.keys() if before.get(key, 0) != after.get(key, 0)}
            got = {key: values[1] for key, values in self.sink.got[epoch].items()}
            if got != change:
                raise Broken(f"the sink got {got} for epoch {epoch}, not {change}")
            before = after


def simulate(seed: int, steps: int = 60) -> World:
    """Raises `Broken` where the contract is not kept."""
    history = History(seed)
    history.run(steps)
    return history.world

