"""Who runs a flow. Recorded when a run takes over, so that the run it fences can say by whom."""

import os
import socket
import subprocess
import uuid
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nosync.model.processes import is_running

BOOT = Path("/proc/sys/kernel/random/boot_id")
BOOT_ELSEWHERE = ("sysctl", "-n", "kern.bootsessionuuid")  # macOS
UNKNOWN = "unknown"
_PROCESS = uuid.uuid4().hex[:16]


@dataclass(frozen=True, slots=True)
class Runner:
    """A process that runs a flow. `boot` changes when the host restarts; `nonce` distinguishes two runs of one moment."""

    process: int
    host: str
    boot: str
    at: float
    nonce: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(facts: dict[str, Any]) -> "Runner":
        return Runner(**facts)


def this_process(at: float) -> Runner:
    return Runner(os.getpid(), socket.gethostname(), this_boot(), at, uuid.uuid4().hex[:8])


def this_boot() -> str:
    """Names the time since the host last restarted. Where the system does not say, no two processes have the same: what one has not
    synced is then looked at closely by the next, as after a restart.
    """
    return BOOT.read_text().strip() if BOOT.exists() else _boot_elsewhere()


@cache
def _boot_elsewhere() -> str:
    try:
        found = subprocess.run(BOOT_ELSEWHERE, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        found = ""
    return found or f"{UNKNOWN} {uuid.uuid4().hex}"


def own_name() -> str:
    """32 hex digits that nobody else will ever use, and that tell who made them (see `is_own`)."""
    return _PROCESS + uuid.uuid4().hex[:16]


def is_own(name: str) -> bool:
    """Whether the name was made by this process."""
    return name.startswith(_PROCESS)


def process_has_ended(process: int, host: str, boot: str) -> bool:
    """Whether a process is certainly no more. Of other hosts nothing is known."""
    if host != socket.gethostname():
        return False
    if boot != this_boot() and not boot.startswith(UNKNOWN):
        return True
    return not is_running(process)


def generation_of(run: str) -> int:
    """Runs are ordered by their generation: the later one is right."""
    return int(run.partition(".")[0])
