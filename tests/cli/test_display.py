"""A run without a terminal says what takes long, ever more rarely, and nothing while it only waits."""

from dataclasses import replace

import pytest

import nosync as ns
from nosync.cli.display import Lines
from nosync.model.status import Status
from tests.security.homes import whole_home


@pytest.fixture(scope="module")
def status() -> Status:
    return replace(ns.open(whole_home()).status, phase="running", message="Processing", epoch=4)


def test_a_long_epoch_says_that_it_goes_on_ever_more_rarely(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = Lines(as_json=False, clock=lambda: now[0])
    for second in range(50):
        now[0] = float(second)
        lines.look(status)
    said = ["Computing epoch 5 (10 s)", "Computing epoch 5 (20 s)", "Computing epoch 5 (40 s)"]
    assert capsys.readouterr().err.splitlines() == said


def test_who_waits_for_input_is_silent_and_the_next_epoch_counts_from_then(status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = Lines(as_json=True, clock=lambda: now[0])
    for second in range(60):
        now[0] = float(second)
        lines.look(replace(status, message="Waiting for data to arrive"))
    now[0] = 65.0
    lines.look(status)
    assert capsys.readouterr().err == ""
    now[0] = 70.0
    lines.look(status)
    assert capsys.readouterr().err == "Computing epoch 5 (11 s)\n"
