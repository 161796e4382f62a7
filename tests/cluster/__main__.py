"""`make cluster-test`: faults on a real standalone cluster in network namespaces, judged against the truth. As root."""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.cluster.faults import KINDS, suffer, summary
from tests.cluster.network import impossible


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--only", choices=KINDS, action="append", help="these kinds alone; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--home", choices=("apart", "shared"), default="apart", help="whether workers see the home of the flow")
    options = parser.parse_args()
    if reason := impossible():
        print(f"left out: there can be no network namespaces here: {reason}")
        return 0
    chance = random.Random(options.seed)
    kinds = options.only or list(KINDS)
    order = [kinds[number % len(kinds)] for number in range(options.faults)]
    chance.shuffle(order)
    shared = Path(tempfile.mkdtemp(prefix="nosync cluster "))
    seen = "who do not see the home" if options.home == "apart" else "who see the home"
    print(f"{len(order)} faults on {options.workers} workers {seen}, seed {options.seed}, in {shared}", flush=True)
    print(summary(suffer(shared / "shared", order, options.seed, options.workers, options.home == "apart")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
