"""What the demo draws, from plain values: on a terminal and elsewhere."""

from __future__ import annotations

import io
from datetime import datetime

from rich.console import Console

from nosync.demo.display import Display, side_by_side
from nosync.demo.watching import Excerpted, Snapshot, snapshot_of
from nosync.history.status import status_of
from nosync.journal.image import Image
from nosync.model.status import Live

HOT = Excerpted("hot", ("auction", "item", "at"), ((12, "viola", datetime(2026, 3, 2, 18, 5)), (7, "atlas", datetime(2026, 3, 2, 18, 1))))


def safe(epoch):
    return {"process": epoch, "host": epoch - 1}


def pace(epoch):
    return Snapshot(epoch=epoch, rows=2_000 * epoch, rejected=3, last_epoch=epoch, last_rows=2_000, last_ms=180.0, safe=safe(epoch))


def console(**options):
    return Console(file=io.StringIO(), width=140, **options)


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


def test_what_happened_stays_in_sight_on_a_terminal():
    terminal = console(force_terminal=True)
    with Display(terminal) as display:
        display.note("the stream is dead")
        display.show(pace(4), [HOT])
        display.show(pace(5), [HOT])
    assert terminal.file.getvalue().count("the stream is dead") >= 2


def test_what_happened_is_a_line_of_its_own_elsewhere():
    plain = console()
    with Display(plain) as display:
        display.show(pace(4), [HOT])
        display.note("the stream is dead")
    assert plain.file.getvalue().splitlines()[1] == "-- the stream is dead"


def test_the_headline_says_up_to_where_it_is_safe():
    terminal = console(force_terminal=True, no_color=True)
    with Display(terminal) as display:
        display.show(pace(4), [HOT])
    assert "process 4, host 3" in terminal.file.getvalue()


def test_totals_come_from_the_home_and_the_last_epoch_from_the_stream():
    status = status_of(Image(epoch=7, rows={"bids": 90, "people": 10}, rejected={"bids": 2}), {}, Live("", "running", ""))
    assert snapshot_of(status, [{"epoch": 6, "rows": 5, "millis": 40.0}], {"process": 7}) == Snapshot(7, 100, 2, 6, 5, 40.0, {"process": 7})


def test_before_the_first_epoch_there_is_nothing_to_report():
    assert snapshot_of(status_of(Image(), {}, Live("", "starting", "")), [], {}) == Snapshot()
