"""Five materialized views over many rows, refreshed after 0.1 %, 1 % and 10 % of new input: `nosync pipelines run` beside Spark's own.

    python -m bench.pipelines --rows 10000000 --repeat 3

Both run the same project in a session that is up already, each in a process of its own, over the same Parquet files; the start of a session
is measured by itself. A refresh is one run of each after a file more; of `--repeat` of them the median counts, and is held against what was
promised. All tables are compared at the end.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from nosync.pipelines.running import run_pipeline
from nosync.pipelines.spec import Spec, read_spec
from nosync.spark.session import local_session
from tests.pipelines.sparks_own import SparksOwn, plain, sparks_own

TARGETS = {0.001: 20, 0.01: 10, 0.1: 2}  # times as fast, by the share of new input
FILE_ROWS = 1_000_000
VIEWS = {
    "by_customer": "SELECT customer, sum(price) AS spent, count(*) AS orders FROM orders GROUP BY customer",
    "by_day": "SELECT day, product, sum(quantity) AS sold, avg(price) AS price FROM orders GROUP BY day, product",
    "by_kind": "SELECT p.kind, o.day, sum(o.price) AS sales FROM orders o JOIN products p ON o.product = p.product GROUP BY p.kind, o.day",
    "dear": "SELECT id, customer, price FROM orders WHERE price > 99",
    "buyers": "SELECT day, count(DISTINCT customer) AS buyers FROM orders GROUP BY day",
}
PYTHON = """
from pyspark import pipelines as dp

@dp.temporary_view
def orders():
    return spark.read.parquet("{in}/orders")

@dp.temporary_view
def products():
    return spark.read.parquet("{in}/products")
"""


def orders(rows: int, first: int, random: np.random.Generator) -> pa.Table:
    return pa.table({
        "id": np.arange(first, first + rows),
        "customer": random.integers(0, 100_000, rows),
        "product": random.integers(0, 1000, rows),
        "quantity": random.integers(1, 10, rows),
        "price": random.integers(1, 10_001, rows) / 100,
        "day": np.array([f"2026-01-{day:02d}" for day in range(1, 31)])[random.integers(0, 30, rows)],
    })  # fmt: skip


def project(folder: Path, name: str, storage: str) -> Path:
    """The folder of a project of five views; both sides have one, over the same input."""
    home = folder / name
    (home / "transformations").mkdir(parents=True)
    (home / "transformations" / "input.py").write_text(PYTHON.replace("{in}", str(folder / "in")))
    statements = [f"CREATE MATERIALIZED VIEW {view} AS {query};\n" for view, query in VIEWS.items()]
    (home / "transformations" / "views.sql").write_text("".join(statements))
    libraries = "libraries:\n  - glob:\n      include: transformations/**\n"
    (home / "spark-pipeline.yml").write_text(f"name: bench\nstorage: {folder / storage}\n{libraries}")
    return home / "spark-pipeline.yml"


def refreshed(own: SparksOwn, theirs: Path, ours: Spec, spark: SparkSession, what: str) -> tuple[float, float]:
    """Seconds of one run of each."""
    taken, begun = own.run(theirs), time.monotonic()
    report = run_pipeline(ours, spark.newSession())
    seconds = time.monotonic() - begun
    print(f"{what}: spark-pipelines {taken:.2f} s, nosync {seconds:.2f} s; {dict(report.outcomes)}", flush=True)
    return taken, seconds


def ratio(taken: list[tuple[float, float]]) -> float:
    """Of the medians."""
    theirs, ours = zip(*taken, strict=True)
    return statistics.median(theirs) / statistics.median(ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    folder, random = Path(tempfile.mkdtemp(prefix="nosync-bench-")), np.random.default_rng(1)
    (folder / "in" / "orders").mkdir(parents=True)
    (folder / "in" / "products").mkdir()
    products = pa.table({"product": np.arange(1000), "kind": [f"kind {number % 20}" for number in range(1000)]})
    pq.write_table(products, folder / "in" / "products" / "1.parquet")
    for first in range(0, given.rows, FILE_ROWS):
        pq.write_table(orders(min(FILE_ROWS, given.rows - first), first, random), folder / "in" / "orders" / f"{first}.parquet")
    there = given.rows
    begun = time.monotonic()
    with sparks_own(folder / "own", {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}) as own:
        own.sql("SELECT 1")
        print(f"session of Spark's own: {time.monotonic() - begun:.1f} s")
        begun = time.monotonic()
        settings = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.driver.memory": "2g", "spark.ui.enabled": "false"}
        spark = local_session(settings)
        print(f"session of ours: {time.monotonic() - begun:.1f} s")
        theirs, ours = project(folder, "theirs", "their-storage"), read_spec(project(folder, "ours", "our-storage"))
        refreshed(own, theirs, ours, spark, "all input")
        for share, target in TARGETS.items():
            taken = []
            for turn in range(given.repeat):
                more = int(given.rows * share)
                pq.write_table(orders(more, there, random), folder / "in" / "orders" / f"{there}.parquet")
                there += more
                taken.append(refreshed(own, theirs, ours, spark, f"{share:.1%} more, {turn + 1}"))
            print(f"{share:.1%} more: {ratio(taken):.1f} times as fast, target {target}: {'met' if ratio(taken) >= target else 'missed'}")
        expected, session = own.rows([*VIEWS]), spark.newSession()
        for name in VIEWS:
            rows = session.table(name)
            assert plain(rows.select(sorted(rows.columns)).collect()) == expected[name], name
    shutil.rmtree(folder, ignore_errors=True)
    print("the tables are equal")


if __name__ == "__main__":
    main()
