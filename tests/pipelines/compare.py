"""The same projects by `spark-pipelines run` and by `nosync pipelines run`, over the same input in several rounds: equal tables after each.

`make test-pipelines` runs it (`--only shop --rounds 5 --seed 3`). In each round files come, change and go; after some rounds a run of ours
is killed at a random moment first. Tables that Spark's own cannot make are judged by a query in batch.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nosync.pipelines.running import run_pipeline
from nosync.pipelines.spec import read_spec
from nosync.spark.session import local_session
from tests.pipelines.larger import JUDGED, ONLY_OURS, PROJECTS
from tests.pipelines.projects import Project
from tests.pipelines.sparks_own import SparksOwn, plain, sparks_own

INIT = {
    "python.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import DataFrame

        @dp.materialized_view
        def example_python_materialized_view() -> DataFrame:
            return spark.range(10)
    """,
    "sql.sql": "CREATE MATERIALIZED VIEW example_sql_materialized_view AS SELECT id FROM example_python_materialized_view WHERE id % 2 = 0",
}


class Input:
    """Random input of a project, round by round. What streams read only grows."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project, self.random, self.number = project, random.Random(seed), 0
        self.versions: dict[int, int] = {}

    def next(self) -> None:
        self.number += 1
        getattr(self, self.project.name, lambda: None)()

    def shop(self) -> None:
        pick = self.random.randint
        self._grow("orders", [
            {"id": self.number * 100 + i, "customer": pick(1, 6), "product": pick(1, 5), "quantity": pick(-1, 5), "day": f"d{pick(1, 4)}"}
            for i in range(pick(1, 40))
        ])  # fmt: skip
        self._grow("returns", [{"id": pick(100, self.number * 100 + 30), "quantity": 1} for _ in range(pick(1, 5))])
        self._stir("customers", "csv", lambda part: [{"customer": part * 2 + i, "town": self.random.choice("ABC")} for i in range(2)])
        self._stir("products", "json", lambda part: [
            {"product": part * 2 + i, "price": pick(1, 900) / 100, "kind": self.random.choice(("tool", "toy"))} for i in range(2)
        ])  # fmt: skip

    def fleet(self) -> None:
        pick = self.random.randint
        self._grow("positions", [
            {"van": f"v{pick(1, 6)}", "at": f"2026-01-01T{pick(10, 23)}:{pick(10, 59)}:00", "km": pick(0, 500) / 2, "load": pick(0, 100)}
            for _ in range(pick(5, 60))
        ])  # fmt: skip
        self._stir("vans", "csv", lambda part: [{"van": f"v{part * 2 + i}", "depot": self.random.choice("XYZ")} for i in range(2)])

    def bank(self) -> None:
        pick = self.random.randint
        self._grow("accounts", [self._event(pick(1, 8)) for _ in range(pick(1, 12))])
        self._grow("transfers", [
            {"id": self.number * 100 + i, "source": pick(1, 8), "target": pick(1, 8), "amount": pick(1, 90000) / 100}
            for i in range(pick(1, 40))
        ])  # fmt: skip
        self._stir("branches", "csv", lambda part: [{"branch": f"b{part}", "region": self.random.choice("NS")}])

    def _event(self, account: int) -> dict[str, Any]:
        self.versions[account] = version = self.versions.get(account, 0) + self.random.randint(1, 3)
        said = {"holder": self.random.choice(("ann", "bea")), "branch": f"b{self.random.randint(0, 4)}"}
        return {"account": account, **said, "version": version, "op": self.random.choice(("UPSERT", "UPSERT", "UPSERT", "DELETE"))}

    def _grow(self, folder: str, rows: list[dict[str, Any]]) -> None:
        self.random.shuffle(rows)
        self.project.put(f"{folder}/{self.number}.json", rows)

    def _stir(self, folder: str, suffix: str, rows: Any) -> None:
        """Some files of a folder are written anew, and one may go."""
        parts = list(range(3)) if self.number == 1 else self.random.sample(range(3), self.random.randint(0, 2))
        for part in parts:
            self.project.put(f"{folder}/{part}.{suffix}", rows(part))
        there = sorted((self.project.folder / "in" / folder).glob(f"*.{suffix}"))
        if self.number > 1 and len(there) > 1 and self.random.random() < 0.4:
            self.random.choice(there).unlink()


def compared(spark: SparkSession, own: SparksOwn, folder: Path, name: str, files: dict[str, str], rounds: int, seed: int) -> None:
    """One project, round by round; raises where a table differs."""
    ours = Project(spark, folder, name, files)
    theirs = folder / f"{name}-spark"
    shutil.copytree(ours.folder, theirs)
    for file in ONLY_OURS:
        (theirs / "transformations" / file).unlink(missing_ok=True)
    spec = theirs / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace(str(ours.folder / "storage"), str(theirs / "storage")))
    own.sql(f"CREATE DATABASE IF NOT EXISTS {name}")
    stream = Input(ours, seed)
    for number in range(1, rounds + 1):
        stream.next()
        if number % 3 == 2:
            killed(ours, stream.random.uniform(0.3, 1.0))
        took, seconds = own.run(spec), time.monotonic()
        report = ours.run()
        seconds = time.monotonic() - seconds
        judged = {table: JUDGED[table] for table in report.outcomes if table in JUDGED}
        tables = [table for table in report.outcomes if table not in judged]
        expected = own.rows([f"{name}.{table}" for table in tables])
        session = spark.newSession()
        session.catalog.setCurrentDatabase(name)
        for table in tables:
            columns = session.table(table)
            rows = plain(columns.select(sorted(columns.columns)).collect())
            assert rows == expected[f"{name}.{table}"], (
                f"{name}.{table}, round {number}, seed {seed}: {rows} is not {expected[f'{name}.{table}']}"
            )
        for table, query in judged.items():
            wanted = session.sql(query)
            rows, answer = (plain(frame.select(sorted(wanted.columns)).collect()) for frame in (session.table(table), wanted))
            assert rows == answer, f"{name}.{table}, round {number}, seed {seed}: {rows} is not {answer}"
        print(f"{name}, round {number}: {len(tables)} tables equal, {len(judged)} judged; {took:.1f} s, ours {seconds:.1f} s", flush=True)


def killed(project: Project, share: float) -> None:
    """A run in a process of its own that ends at some moment."""
    command = [sys.executable, "-m", "tests.pipelines.compare", "--alone", str(project.folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    home, begun = project.folder / "storage" / "nosync" / "home-1", time.monotonic()
    before = {path.name for path in home.glob("runs/*")}
    while process.poll() is None and {path.name for path in home.glob("runs/*")} == before and time.monotonic() - begun < 300:
        time.sleep(0.05)  # until it has taken the home over: Spark's start takes as long as it likes
    time.sleep(share * 4)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


def alone(folder: Path) -> None:
    """A run of one project, as another process does it."""
    spark = local_session(
        {"spark.sql.warehouse.dir": str(folder / "elsewhere"), "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    )
    spark.sql(f"CREATE DATABASE {folder.name} LOCATION '{folder / 'warehouse'}'")
    run_pipeline(read_spec(folder / "spark-pipeline.yml"), spark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.alone:
        return alone(given.alone)
    folder = Path(tempfile.mkdtemp(prefix="a pipeline "))
    with sparks_own(folder / "own", {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}) as own:
        settings = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
        spark = local_session(settings)
        for name, files in {"init": INIT, **PROJECTS}.items():
            if given.only in ("", name):
                compared(spark, own, folder, name, files, 2 if name == "init" else given.rounds, given.seed)
    shutil.rmtree(folder, ignore_errors=True)
    print("equal after every round")


if __name__ == "__main__":
    main()
