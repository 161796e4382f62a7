"""The process that runs the demo's stream, seen from outside: what it reports, and its end by `kill -9`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

from nosync.model.errors import Failed
from nosync.tiers.background import close_pipes


class StreamProcess:
    """A process of its own group, started at once. `started` is its report when the flow ran, `epochs` those of the last ones."""

    def __init__(self, folder: Path, command: tuple[str, ...] = (sys.executable, "-m", "nosync.demo.stream")) -> None:
        self.started: dict[str, Any] = {}
        self.epochs: deque[dict[str, Any]] = deque(maxlen=5)
        self.finished: dict[str, Any] = {}
        self.ended = False
        self._failure = ""
        self._log = folder / "spark.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        self._reader = threading.Thread(target=self._read, name="stream", daemon=True)
        self._reader.start()

    @property
    def id(self) -> int:
        return self._process.pid

    @property
    def safe(self) -> dict[str, int]:
        """The safe points as last reported."""
        return dict(self.epochs[-1]["safe"]) if self.epochs else {}

    def finish(self) -> None:
        """Asks it to process all that is there and to end."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"finish\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """`kill -9`, of the driver and, being of its group, of its JVM: as when the system runs out of memory. Returns when it is dead."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def close(self) -> None:
        """Leaves nothing running, and nothing open."""
        if self._process.poll() is None:
            self.kill()
        self._reader.join()
        close_pipes(self._process)

    def check(self) -> None:
        """Raises if the process has failed."""
        if self._failure or (self.ended and self._process.wait() != 0):
            raise Failed(f"the stream ended: {self._failure or f'exit code {self._process.returncode}'}", hint=f"See {self._log}.")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reported = json.loads(line)
            match reported.pop("event"):
                case "started":
                    self.started = reported
                case "epoch":
                    self.epochs.append(reported)
                case "finished":
                    self.finished = reported
                case "failed":
                    self._failure = reported["message"]
        self.ended = True
