"""Looking at homes: rows as people ask for them, in the form that a program wants; which homes there are; a view as it changes."""

import json
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from nosync.cli.display import Tally, line_of, table_of
from nosync.cli.main import main
from nosync.cli.output import words_of
from nosync.cli.table import differences, distinct_names, only, printed, sorted_by, where
from nosync.cli.watch import marked
from nosync.history.home import Home
from nosync.model.errors import Invalid
from tests.security.homes import whole_home

ROWS = pa.table({"user": ["ann", "bob", None, "cleo"], "spent": [3.0, 1.0, 2.0, None]})


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for form in ("csv", "parquet"):
        read, write = os.pipe()
        os.close(read)
        with suppress(BrokenPipeError), open(write, "w") as stdout, monkeypatch.context() as context:
            context.setattr("sys.stdout", stdout)
            with pytest.raises(BrokenPipeError):  # which ends a command without a word
                printed(ROWS, form, None, {})


def call(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_condition_in_sql_sees_the_rows_and_nothing_else(tmp_path: Path) -> None:
    assert where(ROWS, "spent > 1 and user is not null").to_pylist() == [{"user": "ann", "spent": 3.0}]
    (tmp_path / "secret.csv").write_text("x\n1\n")
    for condition, words in (("prize > 1", "prize"), (f"exists (select * from '{tmp_path}/secret.csv')", "secret"), ("spent >", "syntax")):
        with pytest.raises(Invalid) as error:
            where(ROWS, condition)
        assert words in error.value.message and error.value.hint == "The columns are: user, spent."


def test_rows_are_sorted_up_and_down() -> None:
    assert sorted_by(ROWS, ["-spent"]).column("user").to_pylist() == ["ann", None, "bob", "cleo"]
    assert sorted_by(ROWS, ["user desc", "spent"]).column("user").to_pylist() == ["cleo", "bob", "ann", None]
    with pytest.raises(Invalid) as error:
        only(ROWS, ["spend"])
    assert error.value.hint == 'Did you mean "spent"? The columns are: user, spent.'


def test_the_same_column_twice_is_not_lost() -> None:
    twice = pa.table([[1], [2], [3]], names=["x", "x", "y"])
    assert distinct_names(twice).to_pylist() == [{"x": 1, "x_2": 2, "y": 3}]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (datetime(2026, 5, 1, 12), "2026-05-01 12:00:00"),
        (datetime(2026, 5, 1, 12, 0, 0, 5), "2026-05-01 12:00:00.000005"),
        ({"start": datetime(2026, 5, 1, 12), "end": datetime(2026, 5, 1, 13)}, "2026-05-01 12:00:00 to 2026-05-01 13:00:00"),
        ({"a": 1, "b": [None, "x"]}, "{a: 1, b: [null, x]}"),
    ],
)
def test_values_are_printed_as_people_write_them(value: Any, words: str) -> None:
    assert words_of(value) == words


def test_show_gives_what_is_asked_for_in_every_form(tmp_path: Path) -> None:
    home, wanted = whole_home(), Home(whole_home()).view("sums").to_pylist()
    largest = max(row["total"] for row in wanted)
    shown = json.loads(call("show", home, "sums", "--sort=-total", "--limit", 1, "--columns", "total", "--json").stdout)
    assert shown["rows"] == [{"total": largest}] and shown["total"] == len(wanted)
    lines = call("show", home, "sums", "--format", "csv").stdout.splitlines()
    assert lines[0] == '"total","k"' and len(lines) == 1 + len(wanted)
    assert call("show", home, "sums", "--format", "parquet", "--output", tmp_path / "s.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "s.parquet").to_pylist() == wanted
    shown_one = call("show", home, "sums", "--where", f"total = {largest}").stdout
    assert shown_one.startswith(f"sums as of epoch {Home(home).epoch}: 1 of 1 rows")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("shwo",), "No such command 'shwo'. Did you mean nosync show?"),
        (("show", "nowhere", "v"), "Directory 'nowhere' does not exist."),
        (("show", "HOME", "sum"), 'Did you mean "sums"? There are: rows, sums.'),
        (("show", "HOME", "sums", "--at", "yesterday"), "Invalid value for '--at'"),
        (("show", "HOME", "sums", "--sort", "k,totl"), 'Did you mean "total"?'),
        (("show", "HOME", "sums", "--limt", "3"), "'--limit'?"),
        (("status", "HOME/journal"), "is not the home of a flow"),
        (("run", "nowhere.py", "--home", "x"), "File 'nowhere.py' does not exist."),
    ],
)
def test_a_wrong_call_says_what_to_change(arguments: tuple[str, ...], words: str) -> None:
    done = call(*(one.replace("HOME", str(whole_home())) for one in arguments))
    assert done.exit_code in (1, 2) and words in done.output and "Traceback" not in done.output


def test_list_finds_homes_and_says_how_they_stand(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "shop").symlink_to(whole_home())
    assert "no home of a flow" in call("list", tmp_path).output  # links are not followed
    found = json.loads(call("list", whole_home().parent, "--json").stdout)["homes"]
    assert [(one["home"], one["flow"]) for one in found] == [(str(whole_home()), "shop")]
    assert "shop" in call("list", whole_home().parent).stdout


def test_watch_marks_what_came_and_went() -> None:
    before, now = ROWS.slice(0, 2), pa.table({"user": ["ann", "bob", "bob"], "spent": [4.0, 1.0, 1.0]})
    assert list(differences(before, now)) == [("-", ("ann", 3.0)), ("+", ("ann", 4.0)), ("+", ("bob", 1.0))]
    table = marked(before, now, 20)
    assert [cell.plain for cell in table.columns[0]._cells] == ["-", "+", "+", " "]  # type: ignore[union-attr]
    lines = call("watch", whole_home(), "sums", "--once").stdout.splitlines()
    assert len(lines) == Home(whole_home()).view("sums").num_rows and lines[0].startswith("+ epoch ")


PROGRESS = {
    "epoch": 7, "numInputRows": 1200, "rejectedRows": 2, "lateRows": 0,
    "durationMs": {"triggerExecution": 95, "open": 1, "compute": 92, "seal": 1},
    "safe": {"process": 7, "host": 6}, "sinks": [{"description": "out", "epoch": 5}],
    "sources": [{"description": "my orders", "numInputRows": 1198, "rejectedRows": 2}, {"description": "users", "rejectedRows": 0}],
}  # fmt: skip


def test_an_epoch_is_a_line_or_a_row() -> None:
    assert line_of(PROGRESS) == (
        "epoch      7       1,200 rows       95 ms (open 1, compute 92, seal 1)  2 rejected  safe: process 7, host 6  out: 2 behind"
    )
    table = table_of([PROGRESS])
    assert [str(column.header) for column in table.columns] == [
        "epoch", "rows", "rejected", "late", "ms", "open", "compute", "seal",
    ]  # fmt: skip
    assert [next(iter(column._cells)) for column in table.columns] == ["7", "1,200", "2", "0", "95", "1", "92", "1"]


def test_the_summary_says_what_was_done_and_how_to_go_on() -> None:
    times = iter([10.0, 12.5])
    tally = Tally(clock=lambda: next(times))
    tally.add(PROGRESS)
    status = Home(whole_home()).status
    first, *_, last = tally.summary(status, ["nosync", "run", "my flow.py", "--home", "state/shop"], "state/shop")
    assert first.startswith("shop: 1 epoch, 1,200 rows in 2.5 s, 2 rejected (nosync show state/shop 'my orders.rejected'); ")
    assert last == "to go on: nosync run 'my flow.py' --home state/shop"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_completion(shell: str) -> None:
    assert "_NOSYNC_COMPLETE" in call("completion", shell).stdout
