"""docs/how-to/import.md is true: its flow begins with the state of its stream, and the command says what the page says."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import nosync as ns
from nosync.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_page_does_what_it_says(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nosync.flow.flow.active_or_local", lambda: quick)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: quick)
    [stream, flow, console] = [text for _, text in BLOCK.findall(PAGE.read_text())]
    names: dict[str, Any] = {"__name__": "__main__"}
    with redirect_stdout(io.StringIO()):
        exec(compile(stream, "stream.py", "exec"), names)
    Path("shop.py").write_text(flow)
    command, _, said = console.partition("\n")
    arguments = command.removeprefix("$ nosync ").split()
    looked = CliRunner().invoke(main, [*arguments[:3], "--dry-run"])
    assert (looked.exit_code, Path("state").exists()) == (0, False)
    done = CliRunner().invoke(main, arguments)
    assert done.output == said
    assert looked.output == "".join(said.splitlines(keepends=True)[:-1])
    rows = ns.open("state/shop").view("spend").to_arrow().sort_by("user").to_pylist()
    assert [(row["user"], row["sales"], row["spent"]) for row in rows] == [("ann", 2, 7.5), ("bob", 1, 2.0), ("cleo", 1, 12.5)]
    again = CliRunner().invoke(main, arguments)
    assert "has a history of its own" in again.output


def test_a_folder_without_a_checkpoint_is_said_to_have_none(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nosync.flow.flow.active_or_local", lambda: quick)
    (tmp_path / "in").mkdir()
    program = 'import nosync as ns\nflow = ns.Flow("f")\nflow.view("v", flow.source("s", ns.files("in", format="json", schema="a int")))\n'
    (tmp_path / "flow.py").write_text(program.replace('"in"', repr(str(tmp_path / "in"))))
    found = CliRunner().invoke(main, ["import", str(tmp_path / "in"), str(tmp_path / "flow.py"), "--dry-run"])
    assert found.exit_code == 1
    assert "is no checkpoint of a streaming query" in found.output
    assert "Traceback" not in found.output
    unsaid = CliRunner().invoke(main, ["import", str(tmp_path / "in"), str(tmp_path / "flow.py")])
    assert (unsaid.exit_code, "Pass --home" in unsaid.output) == (2, True)
