"""What happens to a cluster under a running flow, and what must hold after each of these.

    worker      a worker host is killed, with its executor and its Python, in the middle of an epoch; later it is back
    driver      the driver is killed; the one that stands by goes on, and another one stands by
    both        a worker and the driver at once
    straggler   a worker host runs at a quarter of its speed for some epochs; speculation is on
    cut         a worker's cable is pulled for longer than Spark waits for it

After each: epochs go on, and what went out to sinks is what batch says of the files that were taken, each epoch once.
"""

import random
import time
from collections import Counter
from pathlib import Path

from nosync.journal.names import lease_name, newest_generation
from nosync.model.lease import Lease
from nosync.store.objects import open_remote
from tests.cluster.cluster import Cluster, Machine
from tests.cluster.network import Network
from tests.crash.answers import calls_of, check_sink, written_epochs
from tests.crash.host_driver import SINKS
from tests.crash.orders import feed
from tests.crash.seen import Seen
from tests.crash.waiting import until

KINDS = ("worker", "driver", "straggler", "both", "cut")
CUT_SECONDS = 25.0
RENEWED = 3


class Faults:
    """The cluster, which driver leads, and how much it was fed."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.cluster, self.chance = cluster, chance
        self.leading, self.standing_by = cluster.drivers
        self.remote = open_remote(cluster.remote)
        self.fed = 0
        self.seconds: list[tuple[str, float]] = []

    def begin(self) -> None:
        self._feed(2)
        self.cluster.start_driver(self.leading)
        self.cluster.reach(1, self.leading)
        self.cluster.start_driver(self.standing_by, standby=True)

    def step(self, kind: str) -> None:
        """One fault; the time until the next epoch is noted."""
        workers = {"worker": 1, "both": 1, "straggler": 1, "cut": 1, "driver": 0}[kind]
        hit = self.chance.sample(self.cluster.pool, workers)
        if kind in ("driver", "both"):
            self._wait_for_the_lease()
        seen = self.cluster.epoch()
        self._feed(3)
        self.cluster.reach(seen + 1, self.leading)  # in the middle of the next one
        began, seen = time.monotonic(), self.cluster.epoch()
        for worker in hit:
            {"straggler": Machine.slow, "cut": lambda worker: worker.node.plug(False)}.get(kind, Machine.kill)(worker)
        if kind in ("driver", "both"):
            self._lose_the_driver()
        self._feed(1)
        self.cluster.reach(seen + 1, self.leading)
        self.seconds.append((kind, time.monotonic() - began))
        self._feed(2)
        self.cluster.reach(seen + 2, self.leading)
        for worker in hit:
            self._heal(kind, worker, began)
        self.check()

    def _heal(self, kind: str, worker: Machine, began: float) -> None:
        if kind == "straggler":
            worker.hurried()
        elif kind == "cut":
            time.sleep(max(0.0, began + CUT_SECONDS - time.monotonic()))
            worker.node.plug(True)
        else:
            self.cluster.start_worker(worker)

    def _lose_the_driver(self) -> None:
        runs = self.cluster.runs()
        self.leading.kill()
        self.leading, self.standing_by = self.standing_by, self.leading
        until(lambda: self.cluster.runs() > runs or not self.leading.alive, instead=self.leading.words)
        self.cluster.start_driver(self.standing_by, standby=True)

    def _wait_for_the_lease(self) -> None:
        """The one that leads knows that somebody stands by."""

        def beat() -> int:
            lease = Lease.from_bytes(self.remote.read(lease_name(newest_generation(self.remote.sizes("runs")))))
            return lease.beat if lease else 0

        first = beat()
        until(lambda: beat() > first + RENEWED, instead=self.standing_by.words)

    def _feed(self, count: int) -> None:
        feed(self.cluster.shared / "in", range(self.fed, self.fed + count))
        self.fed += count

    def check(self) -> None:
        shared = self.cluster.shared
        written = {folder: written_epochs(shared / folder) for folder in SINKS}
        files = Seen(self.cluster.home, self.remote, shared / "cache").taken()
        for folder, view in SINKS.items():
            check_sink(written[folder], view, files)
        calls_of(shared / "calls")

    def finish(self) -> None:
        """Undisturbed, to the end of the input: all that was fed is there once, and out once."""
        (self.cluster.shared / "finish").touch()
        assert self.leading.process is not None
        assert self.leading.process.wait(600) == 0, self.leading.words()
        self.check()
        seen = Seen(self.cluster.home, self.remote, self.cluster.shared / "cache")
        files = seen.taken()
        assert sorted(name for names in files.values() for name in names) == [f"{number:05d}.json" for number in range(self.fed)]
        assert max(written_epochs(self.cluster.shared / "to_customers")) == max(files)
        seen.check([max(files)], files, frozenset())


def suffer(shared: Path, kinds: list[str], seed: int, workers: int = 3, apart: bool = True) -> Faults:
    """These faults in this order, and an undisturbed end."""
    with Network() as network:
        cluster = Cluster(network, shared, workers, apart)
        try:
            faults = Faults(cluster, random.Random(seed))
            faults.begin()
            for kind in kinds:
                faults.step(kind)
                print(f"{kind}: the next epoch after {faults.seconds[-1][1]:.1f} s", flush=True)
            faults.finish()
            return faults
        except BaseException as error:
            error.add_note(f"seed {seed}, faults {' '.join(kinds)}; logs in {shared}")
            raise
        finally:
            cluster.close()


def summary(faults: Faults) -> str:
    counts = Counter(kind for kind, _ in faults.seconds)
    worst = {kind: max(seconds for other, seconds in faults.seconds if other == kind) for kind in counts}
    return "; ".join(f"{count} {kind} (the next epoch after {worst[kind]:.1f} s at most)" for kind, count in sorted(counts.items()))
