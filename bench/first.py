"""From `python examples/shop.py` to its first line of output, and how much of that is Spark's own start: `make bench-first`.

Each round is a fresh process in a folder of its own, first without an archive of classes, then with the one that `nosync warm` makes. The
archive lies in a cache of this program's own: that of the user is neither used nor changed. The first line of output is the first row of
the view, an epoch having been computed; Spark's start is what the library's log says of it. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET_SECONDS = 12.0
PROGRAM = """
import logging, runpy
logging.basicConfig(format="%(message)s")
logging.getLogger("nosync").setLevel(logging.INFO)
runpy.run_path("examples/shop.py", run_name="__main__")
"""
WARM = "from nosync.cli.main import main; main(['warm'])"
STARTED = re.compile(r"^Spark \S+ started after ([\d.]+) s", re.MULTILINE)


@dataclass(frozen=True)
class Start:
    """Seconds until the first line of output, and of these the seconds until Spark was there."""

    first: float
    spark: float


def start_of(text: str, first: float) -> Start:
    """What a run has logged, put together with when its first line came."""
    found = STARTED.search(text)
    if found is None:
        raise SystemExit(f"the program did not start Spark itself:\n{text}")
    return Start(first, float(found[1]))


def environment(cache: Path) -> dict[str, str]:
    found = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONUNBUFFERED": "1"}
    return found | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))}


def run(place: Path, cache: Path) -> Start:
    """The program of the README, on a home that is new."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "examples", place / "examples")
    log, begun = place / "log", time.monotonic()
    with log.open("w") as errors:
        command = [sys.executable, "-c", PROGRAM]
        process = subprocess.Popen(command, cwd=place, env=environment(cache), stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        first = time.monotonic() - begun
        process.stdout.read()
        if process.wait() or not line:
            raise SystemExit(log.read_text())
    return start_of(log.read_text(), first)


def said(way: str, starts: Sequence[Start]) -> str:
    """A line of the table: medians, and the slowest."""
    first, spark = (statistics.median(getattr(start, name) for start in starts) for name in ("first", "spark"))
    reached = "reached" if first <= TARGET_SECONDS else "missed"
    slowest = max(start.first for start in starts)
    return f"{way:<18} {first:>10.1f} s {spark:>14.1f} s {slowest:>9.1f} s   {reached}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.first", description="from the start of examples/shop.py to its first output")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="nosync-first-") as folder:
        place, cache = Path(folder) / "place", Path(folder) / "cache"
        cache.mkdir()
        cold = [run(place, cache) for _ in range(rounds)]
        subprocess.run([sys.executable, "-c", WARM], env=environment(cache), check=True, stdout=subprocess.DEVNULL)
        warm = [run(place, cache) for _ in range(rounds)]
    print(f"{'':<18} {'first line':>12} {'Spark alone':>16} {'slowest':>11}   target {TARGET_SECONDS:.0f} s, {os.cpu_count()} cores")
    print(said("as installed", cold))
    print(said("after nosync warm", warm))


if __name__ == "__main__":
    main()
