"""Durations are written everywhere the same: as Spark writes intervals, or short."""

import pytest

from nosync.model.duration import microseconds, seconds
from nosync.model.errors import Invalid


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10 seconds", 10_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("interval 2 milliseconds", 2_000),
        ("0 seconds", 0),
        ("500ms", 500_000),
        ("1h 30m", 5_400_000_000),
        ("2.5S", 2_500_000),
        ("1 hr 5 mins 3 sec", 3_903_000_000),
    ],
)
def test_a_number_and_a_unit_and_more_of_them(text: str, found: int) -> None:
    assert microseconds(text) == found == round(seconds(text) * 1e6)


@pytest.mark.parametrize("text", ["", "soon", "10", "10 seconds ago", "-5 seconds", "5 sm", "1 month"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="is not a delay\nWrite a number and a unit"):
        microseconds(text, "a delay")
