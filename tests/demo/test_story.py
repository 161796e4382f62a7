"""What the demo says of a crash and of the way back."""

from __future__ import annotations

import io

from rich.console import Console

from nosync.demo.proof import Compared
from nosync.demo.story import Crash, Return, describe_crash, show_proof, sum_up
from nosync.demo.watching import Snapshot

CRASH = Crash(process=77, epoch=11, opened={12: {}})
BACK = Return(6.5, {"recoverySeconds": 0.2})


def summary(tmp_path, different):
    console = Console(file=io.StringIO(), width=200)
    sum_up(console, Snapshot(epoch=20, rows=1_000), CRASH, [Compared("v", 3, 3, different)], 6, BACK, tmp_path)
    return console.file.getvalue()


def test_the_crash_names_the_epoch_under_way():
    assert "kill -9 77" in describe_crash(CRASH) and "in the middle of epoch 12" in describe_crash(CRASH)


def test_a_crash_between_epochs_is_reported_as_such():
    assert "after epoch 11" in describe_crash(Crash(77, 11, {}))


def test_equal_outputs_are_said_to_be_equal(tmp_path):
    assert "Nothing was lost and nothing came twice" in summary(tmp_path, different=0)


def test_different_outputs_are_never_called_equal(tmp_path):
    assert "Nothing was lost" not in summary(tmp_path, different=1)
    assert "NOT" in summary(tmp_path, different=1)


def test_the_proof_has_a_line_an_output():
    console = Console(file=io.StringIO(), width=140)
    show_proof(console, [Compared("spend", 3, 3, 0), Compared("whales", 2, 1, 1)])
    lines = console.file.getvalue().splitlines()
    assert any("spend" in line and "equal" in line for line in lines)
    assert any("whales" in line and "1 differ" in line for line in lines)
