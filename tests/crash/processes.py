"""The processes of a flow: its driver, and what that has started. All kills are SIGKILL."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent.parent
WORDS = {"worker": "pyspark.daemon", "merger": "nosync.duties.merge_worker", "executor": "CoarseGrainedExecutorBackend"}
END_SECONDS = 30.0


def environment() -> dict[str, str]:
    """For a driver: Spark on loopback, and the package as it is here."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}


def started(command: list[str], folder: Path, log: Path, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A process group of its own, whose words go to the log."""
    with log.open("ab") as lines:
        return subprocess.Popen(command, env=settings, stdout=lines, stderr=lines, start_new_session=True, cwd=folder)


def family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The process and all below it."""
    try:
        driver = psutil.Process(process.pid)
        return [driver, *driver.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_all(process: "subprocess.Popen[bytes]") -> None:
    """The driver, its JVMs and its workers, at once."""
    below = family(process)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for one in below:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(below, timeout=END_SECONDS)


def kill_one(process: "subprocess.Popen[bytes]", kind: str, chance: random.Random) -> bool:
    """One of a kind; False where there is none."""
    found = [one for one in family(process)[1:] if WORDS[kind] in command_of(one)]
    if kind == "worker":  # children of the daemon that forks them
        found = [one for one in found if WORDS[kind] in command_of(_parent(one))]
    if not found:
        return False
    with suppress(psutil.NoSuchProcess):
        chance.choice(sorted(found, key=lambda one: one.pid)).kill()
    return True


def command_of(process: psutil.Process | None) -> str:
    try:
        return " ".join(process.cmdline()) if process is not None else ""
    except psutil.Error:
        return ""


def _parent(process: psutil.Process) -> psutil.Process | None:
    try:
        return process.parent()
    except psutil.Error:
        return None
