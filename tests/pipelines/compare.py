"""The same projects by `spark-pipelines run` and by `nosync pipelines run`, over the same input in several rounds: equal tables after each.

`make test-pipelines` runs it (`--only shop,bank --rounds 5 --seed 3`). In each round files come, change and go; in some rounds a run of
ours is killed first: at a random moment, or before its so manyeth change of the disk while it replaces the tables. Tables that Spark's own
cannot make are judged by a query in batch.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nosync.pipelines.publishing import Publishing
from nosync.pipelines.running import run_pipeline
from nosync.pipelines.spec import read_spec
from nosync.spark.session import local_session
from tests.pipelines import guide, larger
from tests.pipelines.inputs import Input
from tests.pipelines.larger import ONLY_OURS
from tests.pipelines.projects import WRITING, Project
from tests.pipelines.sparks_own import SparksOwn, plain, sparks_own

PROJECTS, JUDGED = {**larger.PROJECTS, **guide.GUIDE}, {**larger.JUDGED, **guide.JUDGED}
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
        if number == 1:
            set_up(spark.sql, name, folder)
            set_up(own.sql, name, folder)
        if number % 3 == 2:
            killed(ours, stream.random.uniform(0.3, 1.0))
        elif number % 3 == 0 and (step := stream.random.randint(1, 60)):
            print(f"{name}, round {number}: killed before change {step} of the disk: {killed_publishing(ours, step)}", flush=True)
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


def set_up(sql: Callable[[str], object], name: str, folder: Path) -> None:
    """Tables of the catalog that a project reads and does not define."""
    for statement in guide.SETUP.get(name, ()):
        sql(statement.replace("{in}", str(folder / name / "in")))


def killed_publishing(project: Project, step: int) -> bool:
    """A run in a process of its own that ends itself; False where it had fewer changes to make."""
    command = [sys.executable, "-m", "tests.pipelines.compare", "--alone", str(project.folder), "--die-at", str(step)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, timeout=900).returncode < 0


def dies_at(step: int) -> None:
    """This process ends before its so manyeth change of the disk while it publishes."""
    publish, done = Publishing.publish, 0

    def counted(own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return own(*given, **named)

        return call

    def publishing(self: Publishing) -> Any:
        for owner, name in WRITING:
            setattr(owner, name, counted(getattr(owner, name)))
        return publish(self)

    Publishing.publish = publishing  # type: ignore[method-assign]


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


def alone(folder: Path, step: int) -> None:
    """A run of one project, as another process does it."""
    if step:
        dies_at(step)
    spark = local_session(
        {"spark.sql.warehouse.dir": str(folder / "elsewhere"), "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    )
    spark.sql(f"CREATE DATABASE {folder.name} LOCATION '{folder / 'warehouse'}'")
    set_up(spark.sql, folder.name, folder.parent)
    run_pipeline(read_spec(folder / "spark-pipeline.yml"), spark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--die-at", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.alone:
        return alone(given.alone, given.die_at)
    folder = Path(tempfile.mkdtemp(prefix="a pipeline "))
    with sparks_own(folder / "own", {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}) as own:
        settings = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
        spark = local_session(settings)
        for name, files in {"init": INIT, **PROJECTS}.items():
            if not given.only or name in given.only.split(","):
                compared(spark, own, folder, name, files, 2 if name == "init" else given.rounds, given.seed)
    shutil.rmtree(folder, ignore_errors=True)
    print("equal after every round")


if __name__ == "__main__":
    main()
