"""What is new in a folder of files: names not met before, with size and modification time; and what slices of such a folder say.

Files and folders may vanish while they are looked at, and links may lead nowhere: those are passed over, and found when they are there.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from nosync.model.errors import Unavailable
from nosync.model.source import Slice

HIDDEN = ("_", ".")


class Entry(NamedTuple):
    """A file: its path below the folder, its size, and its modification time in nanoseconds."""

    name: str
    size: int
    modified: int


def facts(folder: Path, name: str) -> Entry | None:
    """The file as it is now; None where there is none."""
    try:
        found = (folder / name).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Entry(name, found.st_size, found.st_mtime_ns)


def entries_in(slice: Slice) -> list[Entry]:
    """The files that a slice would read, as they were when they were taken."""
    found = [Entry(*entry) for entry in slice.get("files", ())]
    return [entry for entry in found if entry.name not in slice.get("broken", {})]


def new_entries(
    folder: Path, seen: set[str], taken: Callable[[list[str]], set[str]], fits: Callable[[str], bool] = lambda name: True
) -> list[Entry]:
    """Files that were not taken, by their time, then their name. Those that were are added to `seen`: they are not asked for again.
    `fits` says of a name below the folder whether it is meant.
    """
    try:
        unseen = [name for name in _unseen(folder, seen) if fits(name)]
        seen |= taken(unseen)
        found = [facts(folder, name) for name in unseen if name not in seen]
    except OSError as error:
        hint = "Restore access: it is looked at again."
        raise Unavailable(f'folder "{folder}" cannot be read: {error.strerror or error}', hint=hint) from error
    return sorted((entry for entry in found if entry is not None), key=lambda entry: (entry.modified, entry.name))


def _unseen(folder: Path, seen: set[str]) -> Iterator[str]:
    pending = [str(folder)]
    while pending:
        directory = pending.pop()
        try:
            found = os.scandir(directory)
        except FileNotFoundError:
            if directory == str(folder):
                raise
            continue
        with found:
            for entry in found:
                if entry.name.startswith(HIDDEN):
                    continue
                if entry.is_dir():
                    pending.append(entry.path)
                elif (relative := os.path.relpath(entry.path, folder)) not in seen:
                    yield relative
