"""A folder that is as it was need not be listed again."""

import os
from pathlib import Path

from nosync.sources.listing import Looked, new_entries


def looked_through(folder: Path) -> Looked:
    found = Looked()
    found.begin()
    new_entries(folder, set(), lambda names: set(names), looked=found)
    found.had_nothing()
    return found


def aged(*folders: Path) -> None:
    for folder in folders:
        os.utime(folder, (1e9, 1e9))


def test_a_folder_is_as_it_was_until_a_file_appears_in_it_or_below(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    aged(below, tmp_path)
    for place in (tmp_path, below):
        found = looked_through(tmp_path)
        assert found.is_as_it_was()
        (place / "new").touch()
        assert not found.is_as_it_was()
        aged(place)


def test_a_folder_that_has_only_just_changed_is_listed_again(tmp_path: Path) -> None:
    """Another file may come without another time."""
    (tmp_path / "file").touch()
    assert not looked_through(tmp_path).is_as_it_was()


def test_a_folder_that_goes_is_not_as_it_was(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    aged(below, tmp_path)
    found = looked_through(tmp_path)
    below.rmdir()
    aged(tmp_path)
    assert not found.is_as_it_was()
