"""What a home and its views show in a notebook."""

import pytest

import nosync as ns
from nosync.history import home, stored_view
from tests.security.homes import whole_home


def test_a_view_shows_its_first_rows_and_reads_no_more(monkeypatch) -> None:
    view = ns.open(whole_home()).view("sums")
    assert view.num_rows > 1
    found = view._repr_html_()
    assert found.startswith('<p>view &quot;sums&quot; as of epoch') and found.count("<tr>") == view.num_rows
    monkeypatch.setattr(stored_view, "SHOWN", 1)
    assert ns.open(whole_home()).view("sums")._repr_html_().count("<tr>") == 1


def test_a_home_says_how_many_rows_a_view_has_and_of_a_large_one_how_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = ns.open(whole_home())
    assert f"<td>sums</td><td>{opened.view('sums').num_rows}</td>" in opened._repr_html_()
    monkeypatch.setattr(home, "COUNTED_ROWS", 0)
    assert "<td>sums</td><td>at most " in opened._repr_html_()
