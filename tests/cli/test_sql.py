"""`nosync sql`: one statement, or a prompt."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nosync.cli.main import main
from tests.cli.test_keep import at_rest
from tests.history.test_home import home as home


def call(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)), input=input)


@pytest.fixture
def place(home, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    return tmp_path


def test_a_statement_is_answered_as_of_any_epoch(place: Path) -> None:
    answer = call("sql", place, "select k, total from sums order by k", "--at", 1, "--json").output
    assert answer == '[{"k": "a", "total": 7}, {"k": "bb", "total": 5}]\n'
    assert "12" in call("sql", place, "select sum(total) s from sums", "--at", 1).output


def test_every_command_that_looks_back_knows_pins(place: Path) -> None:
    at_rest(place)
    assert 'pin "before" holds epoch 1' in call("pin", place, "before", "--at", 1).output
    assert call("show", place, "rows", "--at", "before", "--json").output == call("show", place, "rows", "--at", 1, "--json").output
    assert call("show", place, "rows", "--at", "before").output.startswith("rows as of epoch 1")
    assert call("sql", place, "select count(*) as n from rows", "--at", "before", "--json").output == '[{"n": 3}]\n'
    at_rest(place)
    assert 'pin "again" holds epoch 1' in call("pin", place, "again", "--at", "before").output


def test_a_wrong_statement_is_refused(place: Path) -> None:
    result = call("sql", place, "select nothing from sums")
    assert result.exit_code == 1 and "the statement is not valid" in result.output and "Traceback" not in result.output


def test_the_prompt_answers_line_by_line_and_survives_mistakes(place: Path) -> None:
    lines = ".views\n\nselect nope;\n.at 1\nselect count(*) as n from rows;\n.at\nselect count(*) as n from rows\n.quit\nselect 1\n"
    result = call("sql", place, "--json", input=lines)
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if line.startswith("[")] == ['[{"n": 3}]', '[{"n": 2}]']
    assert "sums  total int64, k string" in result.output and "not valid" in result.output
