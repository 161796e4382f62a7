"""Answers can be read by people and by programs, whatever the data holds."""

import json
from datetime import date, timedelta
from decimal import Decimal
from io import StringIO

import pyarrow as pa
import pytest
from rich.console import Console

from nosync.cli.output import arrow_grid, cell, plain, print_json, size


def rendered(table):
    screen = Console(width=200, record=True, file=StringIO())
    screen.print(table)
    return screen.export_text()


def test_null_differs_from_the_word():
    assert cell(None).style != cell("null").style


def test_terminal_codes_in_data_are_spelled_out():
    assert cell("a\x1b[31mb\nc").plain == "a\\x1b[31mb\\nc"


def test_markup_in_data_is_shown_as_it_is():
    assert "[bold]x[/bold]" in rendered(arrow_grid(pa.table({"a": ["[bold]x[/bold]"]})))


def test_a_table_without_rows_shows_its_columns():
    assert "user" in rendered(arrow_grid(pa.table({"user": pa.array([], pa.string())})))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1.10"), "1.10"),
        (date(2024, 2, 29), "2024-02-29"),
        (timedelta(seconds=1), "0:00:01"),
        (b"\x00\xff", "AP8="),
        ({"a": [Decimal("1")]}, {"a": ["1"]}),
        ([(1, None)], [[1, None]]),
    ],
)
def test_every_value_has_a_form_in_json(value, expected):
    assert plain(value) == expected


def test_json_is_one_line_that_parses(capsys):
    print_json({"rows": [{"x": float("inf"), "name": "zoë\n"}]})
    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert json.loads(text) == {"rows": [{"x": "Infinity", "name": "zoë\n"}]}


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 2**30, "5.0 GiB")])
def test_sizes_are_said_in_the_largest_fitting_unit(count, text):
    assert size(count) == text
