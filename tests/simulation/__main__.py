"""`make simulate`: as many histories as one likes.

A seed that breaks the contract is printed and can be run alone: `python -m tests.simulation --seed 42`.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from .coverage import missing, table
from .history import simulate
from .many import some, steps_of, together


def main() -> int:
    options = argparse.ArgumentParser(prog="simulate", description=__doc__)
    options.add_argument("--histories", type=int, default=1_000_000)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--seed", type=int, help="one history alone, with its traceback")
    options.add_argument("--processes", type=int, default=os.cpu_count())
    given = options.parse_args()
    if given.seed is not None:
        print(f"{simulate(given.seed, steps_of(given.seed)).operations} operations; nothing broke")
        return 0
    started, done, met = time.monotonic(), 0, together([])
    last = given.first + given.histories
    parts = [range(start, min(start + 500, last)) for start in range(given.first, last, 500)]
    with ProcessPoolExecutor(given.processes) as pool:
        for part, found in zip(parts, pool.map(some, parts), strict=True):
            done, met = done + len(part), together([met, found])
            print(*found[3], sep="\n", end="\n" if found[3] else "")
            seconds = time.monotonic() - started
            print(f"\r{done:,} histories, {len(met[3])} broken, {seconds:,.0f} s, {done / seconds:,.0f} a second", end="", flush=True)
    unseen = missing(met[1], met[2])
    print("\n" + table(met[1], met[2]))
    print(*(f"never happened: {what}" for what in unseen), sep="\n", end="\n" if unseen else "")
    return 1 if met[3] or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
