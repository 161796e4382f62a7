"""`python -m tests.spark_sql --spark CHECKOUT --only join`: the SQL tests of a checkout of Spark over changing tables, against batch.

Prints each query that is not equal, and at the end how many there are of each kind. Nothing of the checkout is kept.
"""

import argparse
import logging
import sys
from collections import Counter
from pathlib import Path

from tests.random_sql.__main__ import session
from tests.spark_sql.judge import clear, judged
from tests.spark_sql.scripts import INPUTS, script

SHOWN = ("wrong", "crashed", "refused")


def main() -> int:
    parser = argparse.ArgumentParser(prog="spark-sql-tests", description="Spark's SQL tests over changing tables, against batch.")
    parser.add_argument("--spark", type=Path, required=True, help="a checkout of Spark, of the release that is installed")
    parser.add_argument("--only", default="", help="words of which one is in the name of a file, between commas")
    parser.add_argument("--open", action="store_true", help="also print what SQL leaves open")
    asked = parser.parse_args()
    inputs = asked.spark / INPUTS
    words = asked.only.split(",")
    files = sorted(file for file in inputs.rglob("*.sql") if any(word in str(file.relative_to(inputs)) for word in words))
    if not files:
        print(f"no file below {inputs} has a name like that", file=sys.stderr)
        return 2
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # files hold statements that fail on purpose
    spark, total = session(), Counter[str]()
    for file in files:
        counts = Counter[str]()
        for verdict in judged(spark, script(file, inputs)):
            counts[verdict.kind] += 1
            if verdict.kind in SHOWN or (asked.open and verdict.kind == "open"):
                print(f"--- {verdict.kind}: {verdict.words[:2000]}\n{verdict.statement}\n", flush=True)
        clear(spark)
        total += counts
        if counts:
            print(f"{file.relative_to(inputs)}: {_said(counts)}", flush=True)
    print(f"{total.total()} statements over changing tables: {_said(total)}", flush=True)
    spark.stop()
    return 1 if total["wrong"] or total["crashed"] else 0


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {words}" for kind, words in WORDS.items() if counts[kind])


WORDS = {"equal": "equal", "open": "left open by SQL", "refused": "refused", "crashed": "crashed", "wrong": "wrong"}

if __name__ == "__main__":
    sys.exit(main())
