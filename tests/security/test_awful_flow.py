"""A flow whose names are as bad as names can be runs, restarts and is read back; all of it inside its home, for its owner alone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import nosync as ns
from nosync.cli.main import main
from nosync.sources.memory import Memory
from tests.security.test_permissions import open_to_others

COLUMNS = ("..", "a`b", "x\ny", "c" * 300)
VIEWS = (".", "Spend", "spend ", "\n\0", "💥", "x" * 300, "a`b", "--help", "%2e%2e", "CON")


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def declared(spark: SparkSession, out: Path) -> tuple[ns.Flow, Memory]:
    flow, source = ns.Flow("..\0\n", spark), ns.memory("`..` string, `a``b` bigint, `x\ny` double, " + f"`{'c' * 300}` bigint")
    rows = flow.source("..", source)
    for view in VIEWS[:3]:
        flow.view(view, rows.groupBy("`..`").sum("`a``b`"))
    for view in VIEWS[3:]:
        flow.view(view, rows.where(f"`..` <> '{view.encode().hex()}'"))
    flow.sink(".hidden\n", flow.sql("select `a``b` from `--help`"), ns.parquet(out))
    return flow, source


@pytest.mark.usefixtures("usual_umask")
def test_awful_names_run_restart_and_are_read_back_inside_the_home(quick: SparkSession, tmp_path: Path) -> None:
    home, before = tmp_path / "home", {*tmp_path.rglob("*")}
    for number in (1, 2):
        flow, source = declared(quick, tmp_path / "out")
        with flow.start(home, shards=1) as run:
            source.add([("k", number, 0.5, 7)])
            run.processAllAvailable()
            assert {tuple(row) for row in run.view("Spend").collect()} == {("k", 2 * number - 1 if number == 1 else 3)}
    opened = ns.open(home)
    assert set(VIEWS) <= set(opened.views)
    assert opened.view("spend ").to_pydict()[".."] == ["k"]
    assert opened.view("a`b").column_names == list(COLUMNS) and opened.view("\n\0").num_rows == 2
    assert opened.view(".", at=1).to_pylist() != opened.view(".", at=2).to_pylist()
    outside = {path for path in tmp_path.rglob("*") if not path.is_relative_to(home) and not path.is_relative_to(tmp_path / "out")}
    assert outside == before
    assert open_to_others(home) == []
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755  # of a sink, others are the readers
    for arguments in (["status"], ["explain"], ["fsck"]):
        result = CliRunner().invoke(main, [*arguments, str(home)])
        assert result.exit_code == 0, result.output
        assert result.output.replace("\n", "").isprintable()
