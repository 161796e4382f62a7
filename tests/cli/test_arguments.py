"""Wrong arguments are answered before anything starts, with exit code 2 and a sentence."""

import shutil

import pytest
from click.testing import CliRunner

from nosync.cli.main import main
from tests.security.homes import whole_home


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("command", ["run", "status", "show"])
def test_each_command_explains_itself(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_a_missing_flow_file_is_named(tmp_path):
    result = call("run", tmp_path / "nothing.py", "--home", tmp_path)
    assert result.exit_code == 2
    assert "nothing.py" in result.output


def test_run_needs_a_home(tmp_path):
    (tmp_path / "flow.py").write_text("")
    result = call("run", tmp_path / "flow.py")
    assert result.exit_code == 2
    assert "--home" in result.output


@pytest.mark.parametrize("shards", ["0", "-1", "many"])
def test_shards_must_be_a_positive_number(tmp_path, shards):
    (tmp_path / "flow.py").write_text("")
    result = call("run", tmp_path / "flow.py", "--home", tmp_path, "--shards", shards)
    assert result.exit_code == 2
    assert "--shards" in result.output


@pytest.mark.parametrize("arguments", [("status",), ("show",)])
def test_a_missing_home_is_named(tmp_path, arguments):
    result = call(*arguments, tmp_path / "nowhere", *(["v"] if arguments == ("show",) else []))
    assert result.exit_code == 2
    assert "nowhere" in result.output


@pytest.mark.parametrize("command", [("show", "sums"), ("sql", "select 1"), ("pin", "name")])
def test_at_is_an_epoch_a_time_or_a_pin(command):
    result = call(command[0], whole_home(), *command[1:], "--at", "some day")
    assert result.exit_code == 2
    assert "--at" in result.output and "the name of a pin" in result.output


@pytest.mark.parametrize(
    ("option", "said", "answer"),
    [("--trigger", "soon", '"soon" is not a time'), ("--latency", "soon", '"soon" is not'), ("--recover-within", "5", '"5" is not')],
)
def test_what_cannot_be_is_refused_before_the_program_is_run(tmp_path, option, said, answer):
    (tmp_path / "flow.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'was run')!r}).touch()")
    result = call("run", tmp_path / "flow.py", "--home", tmp_path / "home", option, said)
    assert result.exit_code == 1 and answer in result.output
    assert not (tmp_path / "was run").exists()


def test_a_drawing_that_cannot_be_written_is_an_error_in_a_line(tmp_path):
    shutil.copytree(whole_home(), tmp_path / "home")
    result = call("explain", tmp_path / "home", "--svg", tmp_path / "nowhere" / "flow.svg")
    assert result.exit_code == 1 and "cannot be written" in result.output


def test_what_cannot_be_a_home_is_found_out_before_spark_starts(tmp_path):
    (tmp_path / "flow.py").write_text("raise SystemExit('the program was loaded')")
    (tmp_path / "file").write_text("")
    result = call("run", tmp_path / "flow.py", "--home", tmp_path / "file")
    assert result.exit_code == 2 and "is a file" in result.output
    result = call("run", tmp_path / "flow.py", "--home", tmp_path)
    assert result.exit_code == 1 and "is not the home of a flow, and not empty" in result.output


def test_errors_of_a_run_name_options_instead_of_arguments(tmp_path):
    hint = 'Pass on_change="rebuild" to go on, or on_change="discard". flow.explain(home=...) says why.'
    (tmp_path / "flow.py").write_text(f"from nosync.model.errors import Invalid\nraise Invalid('it has changed', {hint!r})")
    result = call("run", tmp_path / "flow.py", "--home", tmp_path / "home")
    assert "Pass --on-change rebuild to go on, or --on-change discard. `nosync explain FLOW.py HOME` says why." in result.output


@pytest.mark.parametrize("command", ["history", "why", "changes"])
def test_what_only_python_has_is_said_where_a_command_is_looked_for(command):
    result = call(command, "home")
    assert result.exit_code == 2 and "in Python" in result.output and "`nosync " in result.output
