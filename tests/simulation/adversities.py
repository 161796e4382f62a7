"""What befalls the flow in a simulated history: hosts that restart or are lost, links that are cut, disks that are full, sinks that stall,
clocks that jump. Each says whether it happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nosync.journal.chain import read_chain
from nosync.journal.names import RUNS
from nosync.model.errors import Invalid, OutcomeUnknown, Unavailable

from .life import Life
from .places import Host, Peek, facts_of
from .world import Broken, Crash

if TYPE_CHECKING:
    from .history import History

PASSING = (Unavailable, OutcomeUnknown)


class Adversities:
    """`events` are those that one roll of the dice chooses from."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.events = {
            "cut": self.cut, "partition": self.partition, "full": self.fill, "sink": self.stall, "clock": self.jump, "fail": self.fail_any,
            "several": self.fail_together, "remote restarts": self.restart_remote, "remote left out": self.leave_out_remote,
        }  # fmt: skip

    def now_and_then(self) -> None:
        history = self.history
        if history.world.random.random() < history.rough:
            name = history.world.random.choice(list(self.events))
            history.world.events[name] += self.events[name]()

    def fail_any(self) -> bool:
        self.fail(self.history.world.random.choice(self.history.hosts))
        return True

    def fail(self, host: Host) -> None:
        """A host restarts, or its disk is lost: no process there survives."""
        for life in [life for life in self.history.lives if life.host is host]:
            self.history.drop(life)
        host.boot = self.history.another_boot()
        self.history.world.runs_changed = True
        lost = self.history.remote is not None and self.history.world.random.random() < 0.4
        if lost:
            host.disk.wipe()
        else:
            host.disk.restart()
            self.history.standing_by.restarted(host)
        if host is self.history.host:
            self.history.promises.expect("site" if lost else "host")

    def leave(self, move: bool) -> None:
        """The process is taken for dead, and goes on all the same. The next one may be on another host: they share only the remote."""
        self.history.life = None
        if self.history.remote is None or not move:
            return
        if len(self.history.hosts) > 1 and self.history.world.random.random() < 0.5:
            self.history.host = self.history.world.random.choice([host for host in self.history.hosts if host is not self.history.host])
        else:
            self.history.host = Host(self.history.world, self.history.another_boot())
            self.history.hosts.append(self.history.host)
        self.history.promises.expect("site")

    def partition(self) -> bool:
        """A process is cut off and computes on; another takes over elsewhere, and goes far; the link heals, and both go on acting."""
        chance, life = self.history.world.random, self.history.life
        if self.history.remote is None or life is None:
            return False
        life.host.cut = True
        self.history.act(life, chance.choice((4, 16, 40)))
        self.leave(move=True)
        self.history.start()
        self.history.host.cut = False
        for _ in range(chance.choice((5, 20))):
            if self.history.life is None:
                self.history.start()
            if chance.random() < 0.5:
                self.history.lasting.events.append(chance.randrange(100))
            self.history.act(self.history.life, 2 * self.history.pace)
        life.host.cut = False
        for _ in range(chance.choice((5, 20))):
            self.history.act(chance.choice((life, self.history.life)), 2)
        return True

    def cut(self) -> bool:
        host = self.history.world.random.choice(self.history.hosts)
        host.cut = not host.cut
        return host.cut and self.history.remote is not None

    def fill(self) -> bool:
        host = self.history.world.random.choice(self.history.hosts)
        host.full = not host.full
        return host.full

    def stall(self) -> bool:
        sink = self.history.world.random.choice(list(self.history.sinks.values()))
        sink.down = not sink.down
        return sink.down

    def fail_together(self) -> bool:
        """Several at once: hosts restart or are lost, and links, disks and sinks fail with them."""
        names = ["cut", "full", "sink", "fail", "fail", "remote restarts"]
        for name in self.history.world.random.sample(names, self.history.world.random.choice((2, 3))):
            self.events[name]()
        return True

    def restart_remote(self) -> bool:
        if self.history.remote is None or not self.history.remote.unsynced:
            return False
        self.history.remote.restart(self.history.world)
        self.history.world.runs_changed = True
        return False  # it counts itself

    def leave_out_remote(self) -> bool:
        """A start that forgets the remote is refused, and does nobody any harm."""
        self.history.generation()  # first: it may find that the flow has moved to another host
        started = read_chain(Peek(self.history.host.disk)).image().started  # type: ignore[arg-type]
        if started is None or not started.remote:
            return False
        try:
            Life(self.history, self.history.host, None).begin()
        except (Invalid, Crash, *PASSING):
            runs = [facts_of(file.content) for name, file in self.history.host.disk.files.items() if name.startswith(RUNS)]
            if any(facts.get("process") == self.history.starts for facts in runs):
                raise Broken("a start that was refused has fenced others") from None
            return True
        raise Broken("a start without the remote was not refused")

    def jump(self) -> bool:
        self.history.wall += self.history.world.random.choice((-1e6, -10.0, 10.0, 1e6))
        return True
