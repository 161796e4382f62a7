"""Two hosts, one flow, one remote on a real server: killed, cut off from it, taken over, fenced and started again, with full disks.

Each step is one of:
    driver      the program is killed; perhaps the other host goes on
    early       the same, while it starts
    recovering  the same, as soon as it has taken the flow over
    worker, merger, executor    one process of it is killed, and it goes on; workers are killed up to five times in a row
    partition   its link is cut, silent or deaf; it computes on, or is killed; the other host takes over and rolls up; the link heals, and
                the first must end as fenced
    rival       the other host takes over from one that is well
    standby     the other host stands by; the first is killed, paused or cut off, and the other goes on by itself
    answers     answers of the remote are lost for a while, in the middle of which it may be killed
    slow        its link is slow while a worker is killed
    full        its disk is full; a worker or the program is killed meanwhile, and a start has no room

After each step everything that was promised is looked at, see `_check`.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from nosync.journal.names import ROLLUPS, RUNS, lease_name, newest_generation
from nosync.model.lease import Lease
from nosync.model.run import this_process
from nosync.recovery.check import check
from nosync.recovery.verdict import WHOLE, judge
from nosync.store.objects import Objects
from tests.crash.answers import calls_of, check_sink, written_epochs
from tests.crash.host_driver import SINKS
from tests.crash.hosts import Host
from tests.crash.orders import feed
from tests.crash.seen import Seen
from tests.crash.waiting import until

LINGER_SECONDS = {"driver": 0.5, "early": 6.0, "recovering": 0.5, "worker": 0.5, "merger": 0.5, "executor": 0.5}
DEAF_SECONDS = 3.0
FULL_SECONDS = 2.0
ROLLED_EPOCHS = 9  # so many have a roll-up among them
MOST_WORKERS = 5
RENEWED = 3  # times: the run knows that somebody stands by
OLD_EPOCHS = 5  # of those that were looked at before, at each step


class TwoHosts:
    """Both hosts and what happens to them. `kills` counts processes killed by name; of a driver, all that it had started die with it."""

    def __init__(self, first: Host, second: Host, remote: Objects, shared: Path, chance: random.Random) -> None:
        self.hosts, self.remote, self.shared, self.chance = [first, second], remote, shared, chance
        self.fed = self.kills = self.takeovers = self.checked = self.kept = 0
        self.promised: dict[int, list[str]] = {}
        self.reported = frozenset[int]()
        self.looks = random.Random(0)
        self.steps: list[str] = []
        (shared / "in").mkdir()

    def __str__(self) -> str:
        times = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(self.steps).items()))
        figures = f"{self.kills} kills, {self.takeovers} takeovers, {self.fed} epochs of which {self.kept} can be read"
        where = "namespaces and small disks" if self.active.place.isolated else "loopback and limits on files"
        return f"{times}: {figures}; hosts by {where}"

    @property
    def active(self) -> Host:
        return self.hosts[0]

    @property
    def other(self) -> Host:
        return self.hosts[1]

    def step(self, kind: str) -> None:
        steps: dict[str, Callable[[], None]] = {"partition": self._partition, "rival": self._rival, "answers": self._answers}
        steps |= {"slow": self._slow, "full": self._full, "early": self._early, "recovering": self._recovering, "standby": self._standby}
        self.steps.append(kind)
        steps.get(kind, lambda: self._kill_running(kind))()
        self._check()

    def finish(self, hosts: int) -> None:
        """Undisturbed, to the end of the input; with two `hosts`, the other one takes over then. All that was fed is there once."""
        (self.shared / "finish").touch()
        for _ in range(hosts):
            if not self.active.alive:
                self.active.start()
            assert self.active.ended() == 0, self.active.words()
            self._check(everything=True)
            findings = check(self.active.home, self.remote, this_process(0.0).boot)
            verdict = judge(findings)
            assert verdict.code == WHOLE, f"fsck says {verdict.code}: {verdict.next}"
            self.hosts.reverse()
        self.hosts.reverse()  # whoever came last
        taken = sorted(name for files in self.promised.values() for name in files)
        assert taken == [f"{number:05d}.json" for number in range(self.fed)]
        newest = max(self.promised)
        assert sorted(calls_of(self.shared / "calls")) == list(range(1, newest + 1))

    def check_secrets(self) -> None:
        """No key of the remote is in anything that the hosts have written or said."""
        server = self.active.server
        for folder in (self.shared, *(host.place.seen for host in self.hosts)):
            for file in (path for path in folder.rglob("*") if path.is_file()):
                content = file.read_bytes()
                assert server.key.encode() not in content and server.secret.encode() not in content, f"{file} has a key of the remote"

    def _feed(self, count: int) -> None:
        feed(self.shared / "in", range(self.fed, self.fed + count))
        self.fed += count

    def _running(self) -> int:
        """A host runs the flow and has something to do, the other one perhaps. Gives the epoch before."""
        if not self.active.alive:
            if self.chance.random() < 0.5:
                self.hosts.reverse()
                self.takeovers += 1
            self.active.start()
        seen = self._newest()
        self._feed(self.chance.randint(2, 3))
        return seen

    def _work(self) -> None:
        seen = self._running()
        self.active.reach(seen + 1)

    def _newest(self) -> int:
        return max(self.active.epoch(), Seen(None, self.remote, self.shared / "cache").epoch)

    def _kill(self, kind: str) -> None:
        time.sleep(self.chance.random() * LINGER_SECONDS[kind])
        self.active.kill(kind, self.chance)
        self.kills += 1

    def _kill_running(self, kind: str) -> None:
        for _ in range(self.chance.randint(1, MOST_WORKERS) if kind == "worker" else 1):
            self._work()
            self._kill(kind)

    def _early(self) -> None:
        self._stop_at_once()
        self._running()
        self._kill("early")

    def _recovering(self) -> None:
        self._stop_at_once()
        self._running()
        runs = self.active.runs()
        until(lambda: self.active.runs() > runs or not self.active.alive, instead=self.active.words)
        self._kill("recovering")

    def _stop_at_once(self) -> None:
        if self.active.alive:
            self._kill("driver")

    def _take_over(self) -> Host:
        """The other host goes on, and has something to do. Gives the one that ran before."""
        before = self.active
        self.hosts.reverse()
        self.takeovers += 1
        self.active.start()
        return before

    def _rival(self) -> None:
        self._work()
        before = self._take_over()
        self._feed(2)
        before.is_fenced()
        seen = self._newest()
        self._feed(1)
        self.active.reach(seen + 1)

    def _standby(self) -> None:
        self._work()
        before, generations = self.active, self.remote.sizes(RUNS)
        self.other.start(standby=True)
        lease = lease_name(newest_generation(generations))
        until(lambda: _beat(self.remote.read(lease)) > RENEWED, instead=self.other.words)
        self._feed(2)
        way = self.chance.choice(["killed", "paused", "cut"])
        if way == "killed":
            self._kill("driver")
        elif way == "paused":
            before.pause(True)
        else:
            before.link.become("cut")
        self.hosts.reverse()
        self.takeovers += 1
        until(lambda: len(self.remote.sizes(RUNS)) > len(generations) or not self.active.alive, instead=self.active.words)
        seen = self._newest()
        self._feed(2)
        self.active.reach(seen + 1)
        if way == "paused":
            before.pause(False)
        before.link.become("open")
        if way != "killed":
            before.is_fenced()

    def _partition(self) -> None:
        self._work()
        cut = self.active
        seen = cut.epoch()
        cut.link.become(self.chance.choice(["cut", "silent", "deaf"]))
        self._feed(3)
        cut.reach(seen + 2)  # what it computes now, nobody else will ever know
        killed = self.chance.random() < 0.3
        if killed:
            self._kill("driver")
        self._take_over()
        self._roll_up()
        if killed and self.chance.random() < 0.5:
            cut.start()
            cut.cannot_start()
        cut.link.become("open")
        if not killed:
            cut.is_fenced()

    def _roll_up(self) -> None:
        """The one that took over goes on until the remote has another roll-up."""
        before = self.remote.sizes(ROLLUPS).keys()
        self._feed(ROLLED_EPOCHS)
        until(lambda: self.remote.sizes(ROLLUPS).keys() - before or not self.active.alive, instead=self.active.words)
        assert self.active.alive, self.active.words()

    def _answers(self) -> None:
        self._work()
        self.active.link.become("deaf", self.chance.choice([0, 0, 15, 200]))
        self._feed(2)
        time.sleep(self.chance.random() * DEAF_SECONDS)
        if self.chance.random() < 0.5:
            self._kill("driver")
        self.active.link.become("open")

    def _slow(self) -> None:
        self.active.link.become("slow")
        self._kill_running("worker")
        self.active.link.become("open")

    def _full(self) -> None:
        self._work()
        self.active.fill()
        self._feed(2)
        time.sleep(self.chance.random() * FULL_SECONDS)
        kind = self.chance.choice(["driver", "worker", "none"])
        if kind != "none":
            self._kill(kind)
        if kind == "driver" and self.active.place.isolated:
            self.active.start()
            self.active.cannot_start()
        assert kind == "driver" or self.active.alive, self.active.words()
        self.active.free()

    def _check(self, everything: bool = False) -> None:
        """What was reported as safe from the loss of the site is on the remote, the same as ever; views and sinks are as they must be."""
        reports = self.shared / "reports"
        self.reported = frozenset(map(int, reports.read_text().split())) if reports.exists() else frozenset[int]()
        safe = max(self.reported, default=0)
        written = {folder: written_epochs(self.shared / folder) for folder in SINKS}
        calls_of(self.shared / "calls")
        far = Seen(None, self.remote, self.shared / "cache")  # after them: what is out is there
        files = far.taken()
        assert far.epoch >= safe, f"epoch {safe} was reported as safe, and the remote has {far.epoch}"
        for epoch, promised in self.promised.items():
            assert files[epoch] == promised, f"epoch {epoch} had other input when it was reported as safe"
        self.promised = {epoch: files[epoch] for epoch in range(1, safe + 1)}
        for folder, view in SINKS.items():
            check_sink(written[folder], view, files)
        self._check_views(everything)

    def _check_views(self, everything: bool) -> None:
        if not self.active.epoch():
            return
        near = Seen(self.active.home, self.remote, self.shared / "cache")
        old = list(range(1, self.checked + 1))
        epochs = old if everything else sorted(self.looks.sample(old, min(OLD_EPOCHS, len(old))))
        self.kept = near.check([*epochs, *range(self.checked + 1, near.epoch + 1)], near.taken(), self.reported)
        self.checked = min(near.epoch, max(self.promised, default=0))


def _beat(content: bytes | None) -> int:
    lease = Lease.from_bytes(content)
    return lease.beat if lease else 0
