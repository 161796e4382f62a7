"""Entries come back as they were written, or not at all."""

from typing import Any

import pytest

from nosync.journal.entries import Computed, Entry, Opened, Thinned, check_readable, from_json, to_json
from nosync.model.errors import Internal

OPENED = Opened(3, 0.5, {"s": {"upper": 9}}, {"input/s/1": "mark"})


@pytest.mark.parametrize("change", [{"epoch": "3"}, {"at": None}, {"slices": []}, {"slices": {"s": 1}}, {"files": {"input/s/1": 7}}])
def test_an_entry_whose_values_have_other_types_is_refused(change: dict[str, Any]) -> None:
    assert from_json(to_json(OPENED)) == OPENED
    with pytest.raises(ValueError, match="has another type than it should"):
        from_json(to_json(OPENED) | change)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "input//1", "", "input/\u00fc"])
def test_an_opening_names_no_file_outside_of_the_home(name: str) -> None:
    with pytest.raises(ValueError, match="outside of the home"):
        from_json(to_json(OPENED) | {"files": {"input/s/1": "mark", name: "mark"}})


@pytest.mark.parametrize("entry", [OPENED, Thinned(3, (1, 2)), Computed(1, (), {"s": 1}, {})])
def test_what_can_be_read_back_may_be_appended(entry: Entry) -> None:
    check_readable(entry)


@pytest.mark.parametrize("entry", [Opened(3, 0.5, {"s": None}), Opened("3", 0.5, {}), Thinned(3, (1, "2"))])  # type: ignore[dict-item,arg-type]
def test_what_could_not_be_read_back_is_not_appended(entry: Entry) -> None:
    with pytest.raises(Internal, match="could not be read back"):
        check_readable(entry)
