"""`make simulate`: as many histories as one likes.

A seed that breaks the contract is printed and can be run alone: `python -m tests.simulation --seed 42`.
"""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from .coverage import table
from .history import simulate
from .test_simulation import some, steps_of


def main() -> int:
    options = argparse.ArgumentParser(prog="simulate", description=__doc__)
    options.add_argument("--histories", type=int, default=1_000_000)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--seed", type=int, help="one history alone, with its traceback")
    given = options.parse_args()
    if given.seed is not None:
        print(f"{simulate(given.seed, steps_of(given.seed)).operations} operations; nothing broke")
        return 0
    started, done, seen, broken = time.monotonic(), 0, Counter[tuple[str, str, str]](), 0
    last = given.first + given.histories
    parts = [range(start, min(start + 500, last)) for start in range(given.first, last, 500)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for part, (_, met, failures) in zip(parts, pool.map(some, parts), strict=True):
            done, seen, broken = done + len(part), seen + met, broken + len(failures)
            print(*failures, sep="\n", end="\n" if failures else "")
            print(f"\r{done:,} histories, {broken} broken, {time.monotonic() - started:,.0f} s", end="", flush=True)
    print("\n" + table(seen))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
