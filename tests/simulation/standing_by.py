"""Two processes stand by for the run that leads, which goes on, is killed, stands still or is cut off; whoever finds its lease over follows
it. Clocks go on alike; what is lost, late or refused of their looks and its renewals is the world's to decide.
"""

from __future__ import annotations

import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nosync.journal.journal import Journal
from nosync.journal.names import run_name
from nosync.model.errors import Corrupt, OutcomeUnknown, Unavailable
from nosync.model.lease import LOOK_SECONDS
from nosync.model.run import Runner
from nosync.recovery.following import Follower
from nosync.runtime.standby import Watching

from .places import Host
from .program import DictEngine
from .world import Broken, Crash

if TYPE_CHECKING:
    from .history import History
    from .life import Life

LOG = logging.getLogger("nosync.simulation")
SHARE = 0.1  # of all trouble
TURNS = 140  # of a look each: more than a run that is watched for the first time gets
NOTICED = 20  # turns after which something happens to it


class StandingBy:
    """Of one history, by chance of its own: where nobody stands by, histories stay as they are. `followed`: by generation, the run that
    took it after standing by.
    """

    def __init__(self, history: History) -> None:
        self.history, self.chance = history, random.Random(history.world.seed)
        self.followed: dict[int, str] = {}
        self.count = 0

    def now_and_then(self) -> None:
        history, life = self.history, self.history.life
        if self.chance.random() < SHARE * history.rough and life is not None and life.ready and life.current:
            history.world.events["standby"] += self.happen(life)

    def check(self, journal: Journal, follows: int) -> None:
        """Of those who stood by for one run, one has the next generation."""
        if self.followed.setdefault(journal.generation, journal.run) != journal.run:
            raise Broken(f"{journal.run} and {self.followed[journal.generation]} have both followed run {follows}")

    def restarted(self, host: Host) -> None:
        """Generations that were not synced are taken again by the runs that come: nobody is left who had followed them."""
        if self.history.remote is None:
            self.followed = {number: run for number, run in self.followed.items() if run_name(number) in host.disk.files}

    def happen(self, life: Life) -> bool:
        """Says whether the run was followed."""
        history, chance = self.history, self.chance
        hosts = [self._host(life) for _ in range(2)]
        watching = [Watching(history.link(host) or host.disk, self._runner(host), LOG, history.world.clock) for host in hosts]
        followers = [self._follower(host) for host in hosts]
        way = chance.choice(("goes on", "is killed", "stands still", "is cut off"))
        over: dict[int, Watching] = {}
        for turn in range(TURNS):
            if turn == NOTICED:
                life.host.cut = life.host.cut or way == "is cut off"
                if way == "is killed":
                    history.drop(life)
            if life in history.lives and (way in ("goes on", "is cut off") or turn < NOTICED):
                history.guarded(life, life.renew)
                history.act(life, 1)
            history.world.seconds += LOOK_SECONDS
            self._fetch(followers)
            over |= {number: one for number, one in enumerate(watching) if number not in over and _looks(one)}
            if over and chance.random() < 0.3:
                break
        for follower in followers:
            follower.stop()
        life.host.cut = False
        if over:
            history.world.events[f"followed one that {way}"] += 1
            self._follow([(hosts[number], one.generation or 0) for number, one in sorted(over.items())])
        return bool(over)

    def _host(self, life: Life) -> Host:
        """Of its own where there is a remote to meet at; else they share a folder."""
        if self.history.remote is None:
            return life.host
        host = Host(self.history.world, self.history.another_boot())
        self.history.hosts.append(host)
        return host

    def _follower(self, host: Host) -> Follower:
        """Keeps up with the remote, if there is one."""
        remote: Any = self.history.link(host)
        engine = DictEngine(self.history.world, host.disk, self.history.lasting, "0.standby", False)
        return Follower(host.disk, remote, engine.verify)

    def _fetch(self, followers: list[Follower]) -> None:
        for follower in followers:
            if self.history.remote is not None and self.chance.random() < 0.05:
                with suppress(Unavailable, OutcomeUnknown, Corrupt, Crash):
                    self.history.world.events["followed along"] += follower.step()

    def _runner(self, host: Host) -> Runner:
        self.count += 1
        return Runner(-self.count, "host", host.boot, 0.0, f"standby{self.count}")

    def _follow(self, takers: list[tuple[Host, int]]) -> None:
        """All at once; one of them gets the generation, and the one that led acts on meanwhile."""
        history = self.history
        begun = [history.make_life(host, follows) for host, follows in takers]
        history.life = begun[-1]
        history.lives += begun
        for _ in range(40):
            history.act(self.chance.choice(history.lives), 2)
            if not history.lives:
                return
        history.life = history.life or next((life for life in reversed(history.lives) if life.current), None)


def _looks(watching: Watching) -> bool:
    try:
        return watching.step()
    except (Unavailable, OutcomeUnknown):
        watching.watch.blind()
    except Crash:
        watching.watch = type(watching.watch)()  # another one in its place, which has seen nothing
    return False
