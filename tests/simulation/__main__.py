"""`make simulate`: as many histories as one likes.

A seed that breaks the contract is printed and can be run alone: `python -m tests.simulation --seed 42`. For that, sets of names must come
in the same order every time: Python's hashes are made the same in all processes.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from .coverage import missing, table
from .many import KINDS, some, steps_of, together

HASHES = "PYTHONHASHSEED"
PART = 100  # histories that a process takes at once


def main() -> int:
    options = argparse.ArgumentParser(prog="simulate", description=__doc__)
    options.add_argument("--histories", type=int, default=1_000_000)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--seed", type=int, help="one history alone, with its traceback")
    options.add_argument("--steps", type=int, help="of that one history, where it was not run by this command")
    options.add_argument("--kind", choices=KINDS, default="plain", help="what else changes: programs, shards, paces, workers")
    options.add_argument("--processes", type=int, default=os.cpu_count())
    given = options.parse_args()
    if os.environ.get(HASHES) != "0":
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], os.environ | {HASHES: "0"})
    if given.seed is not None:
        world = KINDS[given.kind](given.seed, given.steps or steps_of(given.seed))
        print(f"{world.operations} operations; nothing broke")
        return 0
    started, done, met = time.monotonic(), 0, together([])
    last = given.first + given.histories
    parts = [range(start, min(start + PART, last)) for start in range(given.first, last, PART)]
    with ProcessPoolExecutor(given.processes) as pool:
        for part, found in zip(parts, pool.map(partial(some, kind=given.kind), parts), strict=True):
            done, met = done + len(part), together([met, found])
            print(*found[3], sep="\n", end="\n" if found[3] else "")
            seconds = time.monotonic() - started
            print(f"\r{done:,} histories, {len(met[3])} broken, {seconds:,.0f} s, {done / seconds:,.0f} a second", end="", flush=True)
    unseen = missing(met[1], met[2]) if given.kind == "plain" else []
    print("\n" + table(met[1], met[2]))
    print(*(f"never happened: {what}" for what in unseen), sep="\n", end="\n" if unseen else "")
    return 1 if met[3] or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
