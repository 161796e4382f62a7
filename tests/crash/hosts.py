"""One of two hosts: its place, its link to the remote, and the program of `host_driver` on it, alive or not."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from nosync.journal.chain import read_chain
from nosync.journal.names import RUNS
from nosync.model.errors import NosyncError
from nosync.store.disk import LocalDisk
from tests.crash.host_driver import AWAY, FENCED
from tests.crash.link import Link
from tests.crash.place import LOOPBACK, Place
from tests.crash.processes import environment, family, kill_all, kill_one, started
from tests.crash.waiting import until
from tests.servers.s3 import Server

LIMITS = {"AWS_TIMEOUT": "4s", "AWS_CONNECT_TIMEOUT": "2s"}  # so that a silent link is known soon
END_SECONDS = 300.0


class Host:
    """Reaches the remote through its link and nothing else."""

    def __init__(self, name: str, shared: Path, master: str, server: Server, remote: str) -> None:
        self.name, self.shared, self.master, self.server, self.remote = name, shared, master, server, remote
        self.place = Place(shared / name)
        self.link = Link(self.place.listening(), (LOOPBACK, server.port))
        self.log = shared / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """As seen from outside."""
        return self.place.seen / "home"

    def start(self, standby: bool = False) -> None:
        command = [sys.executable, "-m", "tests.crash.host_driver", self.master, str(self.place.folder), str(self.shared), self.remote]
        command += ["standby"] if standby else []
        settings = environment() | self.server.settings(self.link.port) | LIMITS
        self.process = started(self.place.command(command), self.shared, self.log, settings)

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def epoch(self) -> int:
        """The newest that its home knows."""
        with suppress(NosyncError, OSError):
            return read_chain(LocalDisk(self.home)).image().epoch
        return 0

    def runs(self) -> int:
        return len(LocalDisk(self.home).sizes(RUNS))

    def reach(self, epoch: int) -> None:
        """Waits until it has computed so much. It must not end before."""
        until(lambda: self.epoch() >= epoch or not self.alive, instead=self.words)
        assert self.alive, f"host {self.name} ended: {self.words()}"

    def kill(self, kind: str, chance: random.Random) -> None:
        """The whole host's processes, or one of a kind as soon as there is one."""
        assert self.process is not None
        process = self.process
        if kind in ("worker", "merger", "executor"):
            until(lambda: not self.alive or kill_one(process, kind, chance), instead=self.words)
            return
        kill_all(process)
        self.process = None

    def pause(self, paused: bool) -> None:
        """Its processes stand still, or go on."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def ended(self) -> int:
        """Waits for its own end; gives the code. What it has started must be gone too."""
        assert self.process is not None
        try:
            code = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGUSR1)
            time.sleep(1.0)
            raise AssertionError(f"host {self.name} hangs: {self.words()}") from None
        self.process = None
        return code

    def is_fenced(self) -> None:
        assert self.ended() == FENCED, self.words()

    def cannot_start(self) -> None:
        assert self.ended() == AWAY, self.words()

    def fill(self) -> None:
        self.place.fill(family(self.process) if self.process else [])

    def free(self) -> None:
        self.place.free(family(self.process) if self.process else [])

    def close(self) -> None:
        if self.process is not None:
            kill_all(self.process)
        self.link.__exit__()
        self.place.close()

    def words(self) -> str:
        return self.log.read_text()[-6000:] if self.log.exists() else "no log"
