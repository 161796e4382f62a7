"""Spark's standalone cluster over such a network: a master, workers, and drivers of the flow of `orders`, one of which stands by.

All see one folder, with the input and what goes out. Where the home lies apart, it is in a part of that which workers do not see: they have
a mount of their own there. Whatever is started here is ended here, by process.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from nosync.journal.chain import read_chain
from nosync.journal.names import RUNS
from nosync.model.errors import NosyncError
from nosync.store.disk import LocalDisk
from tests.cluster.network import Network, Node
from tests.crash.processes import environment, family, kill_all
from tests.crash.waiting import until

SPARK = Path(pyspark.__path__[0])
PORT = 7077
MEMORY = "512m"
CORES = 2  # of a driver's: one worker more than that, so that who stands by has an executor too
SLOW_SHARE = 0.25  # of the time that a slowed worker runs
SLICE_SECONDS = 0.2
HIDE = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'
SETTINGS = {
    "spark.cores.max": str(CORES),
    "spark.executor.memory": MEMORY,
    "spark.network.timeout": "15s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "3s",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.nosync.way": "wide",
}


@dataclass
class Machine:
    """A host and the process on it, alive or not."""

    node: Node
    name: str
    shared: Path
    process: "subprocess.Popen[bytes] | None" = None
    slowed: threading.Event | None = None

    @property
    def log(self) -> Path:
        return self.shared / f"{self.name}.log"

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def words(self) -> str:
        return self.log.read_text()[-4000:] if self.log.exists() else "no log"

    def start(self, command: list[str]) -> None:
        conf = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
        settings = {"PYSPARK_SUBMIT_ARGS": f"{conf} pyspark-shell", "SPARK_HOME": str(SPARK), "SPARK_LOCAL_HOSTNAME": self.node.address}
        self.process = self.node.start(command, self.shared, self.log, environment() | settings)

    def kill(self) -> None:
        """And all that it has started."""
        assert self.process is not None
        kill_all(self.process)
        self.process = None

    def slow(self) -> None:
        """Its processes stand still for most of the time, until it is `hurried`."""
        self.slowed = threading.Event()
        threading.Thread(target=self._slow, args=(self.slowed,), daemon=True).start()

    def _slow(self, ending: threading.Event) -> None:
        while not ending.is_set() and self.process is not None:
            below = family(self.process)
            for number, pause in ((signal.SIGSTOP, (1 - SLOW_SHARE) * SLICE_SECONDS), (signal.SIGCONT, SLOW_SHARE * SLICE_SECONDS)):
                for one in below:
                    with suppress(psutil.NoSuchProcess):
                        one.send_signal(number)
                ending.wait(pause)
        for one in family(self.process) if self.process else ():
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGCONT)

    def hurried(self) -> None:
        if self.slowed is not None:
            self.slowed.set()


@dataclass
class Cluster:
    """`shared` is seen by all under the same path; but for the home, where that lies `apart`."""

    network: Network
    shared: Path
    workers: int = 3
    apart: bool = True
    machines: list[Machine] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.shared / "in").mkdir(parents=True)
        self.home.parent.mkdir()
        self.master = self._machine(10, "master")
        self.pool = [self._machine(11 + number, f"worker {number}") for number in range(self.workers)]
        self.drivers = [self._machine(1 + number, f"driver {number}") for number in range(2)]
        self.master.start([*_spark("master.Master"), "--host", self.master.node.address, "--port", str(PORT), "--webui-port", "0"])
        for worker in self.pool:
            self.start_worker(worker)

    def _machine(self, number: int, name: str) -> Machine:
        self.machines.append(Machine(self.network.node(number), name, self.shared))
        return self.machines[-1]

    @property
    def url(self) -> str:
        return f"spark://{self.master.node.address}:{PORT}"

    @property
    def home(self) -> Path:
        return self.shared / "host" / "home"

    @property
    def remote(self) -> str:
        return (self.shared / "remote").as_uri()

    def start_worker(self, worker: Machine) -> None:
        folder = self.shared / worker.name
        options = ["--host", worker.node.address, "-c", "1", "-m", MEMORY, "-d", str(folder), "--webui-port", "0"]
        worker.start([*self._without_home(), *_spark("worker.Worker"), *options, self.url])

    def _without_home(self) -> list[str]:
        """What a command is put behind that shall not see the home."""
        hide = ["unshare", "--mount", "--propagation", "private", "sh", "-c", HIDE, "sh", str(self.home.parent)]
        return hide if self.apart else []

    def start_driver(self, driver: Machine, standby: bool = False) -> None:
        command = [sys.executable, "-m", "tests.crash.host_driver", self.url, str(self.home.parent), str(self.shared), self.remote]
        driver.start([*command, *["standby"] * standby])

    def epoch(self) -> int:
        """The newest that the home knows."""
        with suppress(NosyncError, OSError):
            return read_chain(LocalDisk(self.home)).image().epoch
        return 0

    def runs(self) -> int:
        return len(LocalDisk(self.home).sizes(RUNS))

    def reach(self, epoch: int, driver: Machine) -> None:
        """Waits until that driver has computed so much. It must not end before."""
        until(lambda: self.epoch() >= epoch or not driver.alive, instead=driver.words)
        assert driver.alive, f"{driver.name} ended: {driver.words()}"

    def close(self) -> None:
        for machine in reversed(self.machines):
            machine.hurried()
            if machine.process is not None:
                kill_all(machine.process)


def _spark(what: str) -> list[str]:
    return [os.fspath(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"]
