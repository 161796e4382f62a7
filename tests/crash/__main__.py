"""Many real crashes: `python -m tests.crash --kills 100 --seed 7`.

Two hosts on one remote suffer most of them (see `two_hosts`), on one core and with executors of their own in turn. Then one host alone,
whose kills are followed by a replay that must leave the same bytes, and one with all queries of Nexmark.

The seed is printed; given again, the steps are of the same kinds and in the same order. What each of them hits is up to the machine:
epochs, merges and workers come and go in their own time.
"""

import argparse
import random
import tempfile
import time
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession

from tests.crash.driver import SETTINGS
from tests.crash.killing import kill_and_judge
from tests.crash.nexmark import kill_and_judge_nexmark
from tests.crash.orders import judge
from tests.crash.two_hosts import TwoHosts
from tests.crash.two_hosts_run import KINDS, STEPS, suffer

ALONE = {
    "local[2,8]": {"driver": 2, "early": 1, "recovering": 1, "worker": 4, "merger": 2},
    "local-cluster[2,1,1024]": {"executor": 3, "driver": 1},
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="crash-test", description="Kills a flow's processes and judges what is left.")
    parser.add_argument("--kills", type=int, default=100, help="of two hosts on one remote")
    parser.add_argument("--alone", type=int, default=20, help="kills of one host without a remote, in each of two ways")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    builder = SparkSession.builder.master("local[1]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    together(spark, arguments.kills, arguments.seed)
    if arguments.alone:
        alone(spark, arguments.alone, arguments.seed)
    spark.stop()


def together(spark: SparkSession, kills: int, seed: int) -> None:
    """Rounds of two hosts, until so many processes were killed."""
    done = 0
    for number in count():
        if done >= kills:
            return
        master = list(KINDS)[number % len(KINDS)]
        weights = KINDS[master]
        kinds = random.Random(seed + number).choices(list(weights), list(weights.values()), k=STEPS[master])
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            both = suffer(Path(folder) / "place", master, seed + number, kinds, kills - done, lambda both: judged(spark, both))
        done += both.kills
        print(f"{done} kills; {master}: {both}, {time.monotonic() - begun:.0f} s", flush=True)


def judged(spark: SparkSession, both: TwoHosts) -> None:
    """Spark's own answer, at the newest epoch."""
    judge(spark, both.active.home, both.shared / "in", taken_by=both.promised)


def alone(spark: SparkSession, kills: int, seed: int) -> None:
    """One host, in each way; then all queries of Nexmark."""
    for number, (master, weights) in enumerate(ALONE.items()):
        kinds = random.Random(seed + number).choices(list(weights), list(weights.values()), k=kills)
        with tempfile.TemporaryDirectory() as folder:
            kill_and_judge(spark, Path(folder) / "place", kinds, seed + number, master)
        print(f"{kills} kills of one host on {master}: all views and outputs as if there had been none", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = kill_and_judge_nexmark(spark, Path(folder), seed)
    print(f"{found} more kills, of a flow with all queries of Nexmark: every view as batch has it, at every epoch", flush=True)


if __name__ == "__main__":
    main()
