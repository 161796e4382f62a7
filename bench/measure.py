"""Run one engine in a fresh process and watch it from outside: memory, disk, and how much the rest of the machine disturbed it.

Memory is PSS summed over the process tree: pages that processes share are counted once, mapped files only as far as they are
resident. `anonymous` is the part of it that the kernel cannot simply drop again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.cases import Contestant

SAMPLE_EVERY_SECONDS = 0.5
LIMIT_SECONDS = 900


@dataclass(frozen=True)
class Measurement:
    """What one run showed. `label` is the engine, with what sets it apart within its case (a level, a size of state)."""

    case: str
    label: str
    repetition: int
    rows: int
    epochs: list[tuple[int, float]]
    wall_seconds: float
    wrong: list[str] | None
    peak_pss: int
    peak_anonymous: int
    state_bytes: int
    input_bytes: int
    disturbed: float
    error: str = ""


@dataclass(frozen=True)
class Watched:
    """Memory over time as (moment, PSS, anonymous part), and the share of the machine that others used meanwhile."""

    samples: list[tuple[float, int, int]]
    disturbed: float


def run_engine(work: Path, case: str, one: Contestant, repetition: int, heap: str) -> Measurement:
    """One run from nothing: its folder is removed before and after, whatever happens."""
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    spec = {"heap": heap, "state": str(folder / "state"), **asdict(one)}
    (folder / "spec.json").write_text(json.dumps(spec))
    command = [sys.executable, "-m", "bench.worker", str(folder / "spec.json")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment())
        watched = _watch(process)
    run = _measurement(case, one, repetition, _outcome(folder, process.returncode), watched, folder_bytes(folder / "state"))
    shutil.rmtree(folder, ignore_errors=True)
    return run


def _measurement(case: str, one: Contestant, repetition: int, outcome: dict[str, Any], watched: Watched, state_bytes: int) -> Measurement:
    # What the check of the answer needs afterwards is not the engine's.
    within = [sample for sample in watched.samples if sample[0] <= outcome["ended_at"]]
    return Measurement(
        case,
        one.label,
        repetition,
        one.data.rows,
        outcome["epochs"],
        outcome["wall_seconds"],
        outcome["wrong"],
        peak_pss=max((pss for _, pss, _ in within), default=0),
        peak_anonymous=max((anonymous for _, _, anonymous in within), default=0),
        state_bytes=state_bytes,
        input_bytes=one.data.bytes,
        disturbed=watched.disturbed,
        error=outcome.get("error", ""),
    )


def folder_bytes(folder: Path) -> int:
    """Bytes of all files under a folder; small files count with their length, not with the blocks they occupy."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _environment() -> dict[str, str]:
    root = Path(__file__).resolve().parent.parent
    paths = [str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _outcome(folder: Path, code: int) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads((folder / "outcome.json").read_text())
    except FileNotFoundError:
        lines = (folder / "log").read_text(errors="replace").strip().splitlines()
        error = "\n".join(lines[-40:]) or f"ended with code {code}"
        return {"epochs": [], "wall_seconds": 0.0, "ended_at": time.time(), "wrong": None, "error": error}
    return outcome


def _watch(process: subprocess.Popen[bytes]) -> Watched:
    started, busy = time.perf_counter(), _busy_seconds()
    used: dict[int, float] = {}
    samples = []
    while process.poll() is None:
        if time.perf_counter() - started > LIMIT_SECONDS:
            _end(process)
        samples.append((time.time(), *_sample(process.pid, used)))
        time.sleep(SAMPLE_EVERY_SECONDS)
    others = _busy_seconds() - busy - sum(used.values())
    available = (time.perf_counter() - started) * (os.cpu_count() or 1)
    return Watched(samples, max(0.0, others / available))


def _sample(pid: int, used: dict[int, float]) -> tuple[int, int]:
    pss = anonymous = 0
    for process in _tree(pid):
        try:
            # A child that is just being started shares its parent's memory for a moment and would be counted twice.
            if process.pid != pid and time.time() - process.create_time() < 1.0:
                continue
            times = process.cpu_times()
            used[process.pid] = times.user + times.system
            memory = memory_of(process.pid)
        except (psutil.Error, OSError):
            continue
        pss, anonymous = pss + memory[0], anonymous + memory[1]
    return pss, anonymous


def memory_of(pid: int) -> tuple[int, int]:
    """PSS of one process, and its anonymous part."""
    sizes = dict(line.split(":") for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return int(sizes["Pss"].split()[0]) * 1024, int(sizes["Pss_Anon"].split()[0]) * 1024


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _end(process: subprocess.Popen[bytes]) -> None:
    for child in reversed(_tree(process.pid)):
        child.kill()


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)
