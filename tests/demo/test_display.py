"""What the demo draws, from plain values: on a terminal and elsewhere."""

from __future__ import annotations

import io
from datetime import datetime

from rich.console import Console

from nosync.demo.display import Display, side_by_side
from nosync.demo.watching import Excerpted, Pace, PaceKeeper

HOT = Excerpted("hot", ("auction", "item", "at"), ((12, "viola", datetime(2026, 3, 2, 18, 5)), (7, "atlas", datetime(2026, 3, 2, 18, 1))))


def pace(epoch):
    return Pace(epoch=epoch, rows=2_000 * epoch, rejected=3, last_rows=2_000, last_ms=180.0, rows_per_second=11_111.0)


def console(**options):
    return Console(file=io.StringIO(), width=140, **options)


class Run:
    def __init__(self, *epochs):
        self.recentProgress = [
            {"epoch": epoch, "numInputRows": 100, "rejectedRows": 1, "durationMs": {"triggerExecution": 50.0}} for epoch in epochs
        ]


def test_without_a_terminal_each_epoch_is_one_line():
    plain = console()
    with Display(plain) as display:
        for epoch in (1, 1, 2):
            display.show(pace(epoch), [HOT])
    lines = plain.file.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1", "2"]
    assert "hottest: auction 12, item viola, at 18:05" in lines[0]


def test_on_a_terminal_the_views_are_tables():
    terminal = console(force_terminal=True)
    with Display(terminal) as display:
        display.show(pace(4), [HOT])
    text = terminal.file.getvalue()
    assert "8,000" in text and "viola" in text and "atlas" in text


def test_an_excerpt_without_rows_is_drawn_too():
    terminal = console(force_terminal=True)
    with Display(terminal) as display:
        display.show(pace(0), [Excerpted("hot", (), ())])
    assert "hot: nothing yet" in terminal.file.getvalue()


def test_two_states_of_a_view_stand_beside_each_other():
    plain = console()
    plain.print(side_by_side([HOT, HOT]))
    assert any(line.count("viola") == 2 for line in plain.file.getvalue().splitlines())


def test_every_epoch_counts_once_however_often_one_looks():
    keeper = PaceKeeper()
    keeper.look(Run(1, 2))
    keeper.look(Run(1, 2))
    last = keeper.look(Run(2, 3))
    assert (last.epoch, last.rows, last.rejected) == (3, 300, 3)
    assert last.rows_per_second == 2_000.0


def test_before_the_first_epoch_there_is_nothing_to_tell():
    assert PaceKeeper().look(Run()) == Pace(0, 0, 0, 0, 0.0, 0.0)
