"""What is wrong with a flow's file is said in its own terms."""

import pytest
from click.testing import CliRunner

from nosync.cli.main import main


@pytest.fixture
def run(tmp_path):
    def call(source):
        file = tmp_path / "flow.py"
        file.write_text(source)
        return CliRunner().invoke(main, ["run", str(file), "--home", str(tmp_path / "home")])

    return call


def test_a_file_without_a_flow_says_how_to_define_one(run):
    result = run("stream = 1")
    assert result.exit_code == 1
    assert 'defines no variable "flow"' in result.output
    assert "flow = nosync.Flow(" in result.output


def test_a_flow_of_another_type_is_named(run):
    result = run("flow = 17")
    assert result.exit_code == 1
    assert "not a Flow but of type int" in result.output


def test_a_file_that_raises_shows_the_users_line_and_nothing_of_ours(run):
    result = run("def price():\n    return 1 / 0\n\nprice()\n")
    assert result.exit_code == 1
    assert "ZeroDivisionError: division by zero" in result.output
    assert "line 2, in price" in result.output
    assert "nosync/cli" not in result.output


def test_a_syntax_error_shows_its_place(run):
    result = run("flow = = 1\n")
    assert result.exit_code == 1
    assert "SyntaxError" in result.output
    assert "line 1" in result.output


def test_an_error_of_ours_in_the_file_is_shown_as_its_text(run):
    result = run('from nosync.model.errors import Invalid\nraise Invalid("bad name", hint="Use another.")\n')
    assert result.exit_code == 1
    assert result.output.strip().splitlines()[1:] == ["Error: bad name", "Use another."]


def test_modules_beside_the_file_can_be_imported(run, tmp_path):
    (tmp_path / "beside_the_flow.py").write_text("flow = 'not one'")
    result = run("from beside_the_flow import flow")
    assert "of type str" in result.output
