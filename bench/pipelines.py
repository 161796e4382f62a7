"""Five materialized views over many rows, refreshed after 0.1 %, 1 % and 10 % of new input: `nosync pipelines run` beside Spark's own.

    python -m bench.pipelines --rows 10000000

Both run the same project in a session that is up already, each in a process of its own, over the same Parquet files; the start of a session
is measured by itself. Each refresh is one run of each, since it changes what the next finds; the tables are compared at the end.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nosync.pipelines.running import run_pipeline
from nosync.pipelines.spec import read_spec
from nosync.spark.session import local_session
from tests.pipelines.sparks_own import plain, sparks_own

SHARES = (0.001, 0.01, 0.1)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
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
        for share in (1.0, *SHARES):
            if share < 1:
                more = int(given.rows * share)
                pq.write_table(orders(more, there, random), folder / "in" / "orders" / f"{there}.parquet")
                there += more
            taken = own.run(theirs)
            begun = time.monotonic()
            report = run_pipeline(ours, spark.newSession())
            seconds = time.monotonic() - begun
            what = "all input" if share == 1 else f"{share:.1%} more"
            ratio = f"{taken / seconds:.1f} times as fast"
            print(f"{what}: spark-pipelines {taken:.2f} s, nosync {seconds:.2f} s, {ratio}; {dict(report.outcomes)}", flush=True)
        names = [name for name in VIEWS if name != "dear"]
        expected, session = own.rows(names), spark.newSession()
        for name in names:
            rows = session.table(name)
            assert plain(rows.select(sorted(rows.columns)).collect()) == expected[name], name
    shutil.rmtree(folder, ignore_errors=True)
    print("the tables are equal")


if __name__ == "__main__":
    main()
