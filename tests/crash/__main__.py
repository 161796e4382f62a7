"""Many real kills: `python -m tests.crash --kills 100 --seed 7`.

The seed is printed; given again, the kills are of the same kinds, in the same order and after the same delays. What each of them hits is
up to the machine: epochs, merges and workers come and go in their own time.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from tests.crash.driver import SETTINGS
from tests.crash.killing import kill_and_judge
from tests.crash.nexmark import kill_and_judge_nexmark

ROUND = 20
KINDS = {
    "local[2,8]": {"driver": 2, "early": 1, "recovering": 1, "worker": 4, "merger": 2},
    "local-cluster[2,1,1024]": {"executor": 3, "driver": 1},
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="crash-test", description="Kills a flow's processes and judges what is left.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for number, start in enumerate(range(0, arguments.kills, ROUND)):
        master = list(KINDS)[number % 2]
        seed = arguments.seed + number
        chance = random.Random(seed)
        kinds = chance.choices(list(KINDS[master]), list(KINDS[master].values()), k=min(ROUND, arguments.kills - start))
        with tempfile.TemporaryDirectory() as folder:
            kill_and_judge(spark, Path(folder) / "place", kinds, seed, master)
        print(f"{start + len(kinds)} kills on {master}: all views and outputs as if there had been none", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        kills = kill_and_judge_nexmark(spark, Path(folder), arguments.seed)
    print(f"{kills} more kills, of a flow with all queries of Nexmark: every view as batch has it, at every epoch", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
