"""`nosync pipelines`: a project is made, looked at, run, begun anew and followed from the command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from nosync.bridge.sessions import active
from nosync.cli import pipelines
from nosync.cli.main import main

QUICK = """
database: commands
configuration:
  spark.sql.codegen.wholeStage: "false"
  spark.sql.shuffle.partitions: "1"
  spark.sql.session.timeZone: Asia/Tokyo
"""
NUMBERS = """
from pyspark import pipelines as dp

@dp.table
def numbers():
    return spark.readStream.schema("n int").json({folder!r})

@dp.materialized_view
def total():
    return spark.table("numbers").groupBy().sum("n").toDF("total")

@dp.materialized_view
def there():
    return spark.read.schema("n int").json({folder!r})
"""


class Commands:
    """The commands in a project's folder, on the session of the tests."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def __call__(self, *arguments: str) -> Result:
        with active(self.spark):
            return CliRunner().invoke(main, ["pipelines", *arguments])

    def run(self, *arguments: str) -> dict[str, Any]:
        result = self("run", "--json", "--spec", str(self.folder / "spark-pipeline.yml"), *arguments)
        assert result.exit_code == 0, result.output
        said: dict[str, Any] = json.loads(result.stdout)
        return said["tables"]

    def put(self, name: str, *numbers: int) -> None:
        (self.folder / "in" / name).write_text("".join(f'{{"n": {number}}}\n' for number in numbers))

    def table(self, name: str) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.spark.newSession().table(f"commands.{name}").collect()))


@pytest.fixture(scope="module")
def command(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """The sample project, with two tables more: numbers of files, and their sum."""
    folder = tmp_path_factory.mktemp("commands")
    command = Commands(quick, folder / "sample")
    quick.sql(f"CREATE DATABASE commands LOCATION '{folder / 'warehouse'}'")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made = command("init", "--name", "sample")
    assert made.stdout == "cd 'sample'\nnosync pipelines run\n"
    spec = folder / "sample" / "spark-pipeline.yml"
    spec.write_text(spec.read_text() + QUICK)
    (folder / "sample" / "in").mkdir()
    transformations = folder / "sample" / "transformations"
    (transformations / "numbers.py").write_text(NUMBERS.format(folder=str(folder / "sample" / "in")))
    (transformations / "zone.sql").write_text("CREATE MATERIALIZED VIEW zone AS SELECT current_timezone() AS zone;")
    command.put("1.json", 1, 2)
    return command


def test_a_sample_project_is_made_looked_at_and_run(command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(command.folder / "in")  # the project is found in a folder above
    looked = command("dry-run")
    assert looked.exit_code == 0, looked.output
    assert "materialized view example_sql_materialized_view: maintained" in looked.stdout.splitlines()
    assert not list((command.folder / "pipeline-storage").iterdir())
    result = command("run")
    assert result.exit_code == 0, result.output
    assert "numbers: written whole" in result.stdout.splitlines() and result.stdout.splitlines()[-1].startswith("epoch 1, after ")
    assert "materialized view total: maintained" in result.stderr.splitlines()
    assert command.table("example_sql_materialized_view") == [(0,), (2,), (4,), (6,), (8,)]
    assert command.table("zone") == [("Asia/Tokyo",)]  # `configuration`


def test_tables_that_are_named_are_updated_or_begun_anew(command: Commands) -> None:
    command.run()
    command.put("2.json", 3)
    assert command.run("--refresh", "numbers")["numbers"] == "updated"
    assert command.table("numbers") == [(1,), (2,), (3,)] and command.table("total") == [(3,)]
    (command.folder / "in" / "1.json").unlink()
    assert [*command.run("--full-refresh", "numbers, total")] == ["numbers", "total"]
    assert command.table("numbers") == [(3,)] and command.table("total") == [(3,)]
    assert set(command.run("--full-refresh-all", "--conf", "spark.sql.session.timeZone=UTC").values()) == {"written whole"}
    assert command.table("zone") == [("UTC",)]
    refused = command("run", "--full-refresh-all", "--refresh", "total")
    assert refused.exit_code == 1 and "--full-refresh-all and --refresh exclude each other" in refused.output
    assert command("run", "--conf", "nonsense").exit_code == 2


def test_tables_follow_until_ctrl_c(command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    tell, reports = pipelines._tell, []

    def told(*given: Any) -> None:
        tell(*given)
        reports.append(given[1])
        if len(reports) == 2:
            raise KeyboardInterrupt
        command.put("9.json", 100)

    monkeypatch.setattr(pipelines, "_tell", told)
    result = command("run", "--continuous", "--json", "--spec", str(command.folder / "spark-pipeline.yml"))
    assert result.exit_code == 0, result.output
    assert [json.loads(line)["epoch"] for line in result.stdout.splitlines()] == [report.epoch for report in reports]
    assert (100,) in command.table("numbers")


def test_a_lost_storage_comes_back_from_its_remote(command: Commands, tmp_path: Path) -> None:
    remote = f"file://{tmp_path / 'remote'}"
    storage = command.folder / "pipeline-storage" / "nosync"
    shutil.rmtree(storage, ignore_errors=True)
    command.put("1.json", 5)
    command.run("--full-refresh-all", "--remote", remote)
    shutil.rmtree(storage)
    assert command.run("--remote", remote)["numbers"] == "written whole"
    assert command.run("--remote", remote)["numbers"] == "unchanged"
    (command.folder / "in" / "1.json").unlink()
    command.run("--remote", remote)
    assert (5,) in command.table("numbers") and (5,) not in command.table("there")  # files that were there still were kept again
    refused = command("run", "--spec", str(command.folder / "spark-pipeline.yml"))
    assert refused.exit_code == 1 and "this home has a copy on" in refused.output
