"""`nosync status` says how a flow stands whatever became of its layers."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nosync.cli.main import main
from tests.security.homes import whole_home


def status(home: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["status", str(home), *options])


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_status_answers_while_every_layer_is_lost(tmp_path: Path, options: tuple[str, ...]) -> None:
    home = shutil.copytree(whole_home(), tmp_path / "home")
    shutil.rmtree(home / "layers")
    result = status(home, *options)
    assert result.exit_code == 0, result.output
    assert "sums" in result.output


def test_rows_are_counted_when_they_are_asked_for() -> None:
    counted = {view["name"]: view["rows"] for view in json.loads(status(whole_home(), "--rows", "--json").output)["views"]}
    assert counted["sums"] == 4
    plain = json.loads(status(whole_home(), "--json").output)["views"]
    assert all("rows" not in view for view in plain)
    assert "rows" in status(whole_home(), "--rows").output
