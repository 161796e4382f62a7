"""Who runs a flow. Recorded when a run takes over, so that the run it fences can say by whom."""

import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Runner:
    """A process that runs a flow. `boot` changes when the host restarts; `nonce` tells two runs of one moment apart."""

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
    host = socket.gethostname()
    boot = BOOT.read_text().strip() if BOOT.exists() else host
    return Runner(os.getpid(), host, boot, at, uuid.uuid4().hex[:8])
