"""What is new in a folder of files: names not met before, with size and modification time; and what slices of such a folder say.

Files and folders may vanish while they are looked at, and links may lead nowhere, or back to a folder that they lie in: those are passed
over, and found when they are there. So is what is no file: a pipe would make whoever opens it wait. A folder that cannot be read hides no
other.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from nosync.model.errors import Unavailable
from nosync.model.source import Slice

HIDDEN = ("_", ".")
TICK_NANOS = 50 * 10**6  # within which two changes may leave the same time
LISTED_SECONDS, LISTED_SHARE = 1.0, 0.005  # how often a folder is listed although it has not changed, and by which share of the time
NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class Entry(NamedTuple):
    """A file: its path below the folder, its size, and its modification time in nanoseconds."""

    name: str
    size: int
    modified: int


def facts(folder: Path, name: str) -> Entry | None:
    """The file as it is now; None where there is none."""
    try:
        found = (folder / name).stat()
    except OSError as error:
        if error.errno in NOWHERE:
            return None
        raise
    return Entry(name, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def name_below(folder: Path, address: str) -> str | None:
    """The name of a file below the folder, of its address as Spark writes it; None where it lies elsewhere."""
    path = os.path.normpath(unquote(urlsplit(address).path))
    for base in (folder.absolute(), folder.resolve()):
        if path.startswith(f"{str(base).rstrip('/')}/"):
            return os.path.relpath(path, base)
    return None


def entries_in(slice: Slice) -> list[Entry]:
    """The files that a slice would read, as they were when they were taken."""
    found = [Entry(*entry) for entry in slice.get("files", ())]
    return [entry for entry in found if entry.name not in slice.get("broken", {})]


class Looked:
    """Whether a folder need not be listed: its last listing had nothing, neither it nor a folder below has changed since, and it is not
    long ago. A file that appears changes its folder's time; what does not (a link that leads somewhere by now) is found a little later.
    """

    def __init__(self) -> None:
        self.times: dict[str, int] = {}  # of folders, as they were before they were listed
        self.again_at = 0.0

    def begin(self) -> None:
        self.times, self.again_at, self.begun_at = {}, 0.0, time.monotonic()

    def had_nothing(self) -> None:
        now, wall = time.monotonic(), time.time_ns()
        if all(wall - modified > TICK_NANOS for modified in self.times.values()):  # else it may change again without another time
            self.again_at = now + max(LISTED_SECONDS, (now - self.begun_at) / LISTED_SHARE)

    def is_as_it_was(self) -> bool:
        if time.monotonic() >= self.again_at:
            return False
        try:
            return all(os.stat(folder).st_mtime_ns == modified for folder, modified in self.times.items())
        except OSError:
            return False


def new_entries(
    folder: Path, seen: set[str], taken: Callable[[list[str]], set[str]], fits: Callable[[str], bool] = lambda name: True,
    looked: Looked | None = None,
) -> list[Entry]:  # fmt: skip
    """Files that were not taken, by their time, then their name. Those that were are added to `seen`: they are not asked for again.
    `fits` says of a name below the folder whether it is meant.
    """
    failed: list[OSError] = []
    unseen = [name for name in _unseen(folder, seen, failed, (looked or Looked()).times) if fits(name)]
    seen |= taken(unseen)
    found: list[Entry] = []
    for name in unseen:
        try:
            entry = facts(folder, name) if name not in seen else None
        except OSError as error:
            failed.append(error)
        else:
            found += [entry] if entry is not None else []
    if failed and not found:
        where, hint = failed[0].filename or folder, "Restore access: it is looked at again."
        raise Unavailable(f'"{where}" cannot be read: {failed[0].strerror or failed[0]}', hint=hint) from failed[0]
    return sorted(found, key=lambda entry: (entry.modified, entry.name))


def _unseen(folder: Path, seen: set[str], failed: list[OSError], times: dict[str, int]) -> Iterator[str]:
    """Names of what may be files. Folders that cannot be read are left out, and said in `failed`; of all others `times` says when they
    changed.
    """
    pending = [str(folder)]
    while pending:
        directory = pending.pop()
        try:
            times[directory] = os.stat(directory).st_mtime_ns
            with os.scandir(directory) as found:
                entries = [entry for entry in found if not entry.name.startswith(HIDDEN)]
        except OSError as error:
            if error.errno not in NOWHERE or directory == str(folder):
                failed.append(error)
            continue
        for entry in entries:
            if _is_folder(entry):
                pending += [] if entry.is_symlink() and _leads_back(entry.path, folder) else [entry.path]
            elif (relative := os.path.relpath(entry.path, folder)) not in seen:
                yield relative


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _leads_back(link: str, folder: Path) -> bool:
    """Whether a link to a folder leads to one on the way to it: there the same files would be met again and again."""
    target = Path(os.path.realpath(link))
    way = [folder, *(folder.joinpath(*parts) for parts in _beginnings(Path(link).parent.relative_to(folder).parts))]
    return any(Path(os.path.realpath(step)).is_relative_to(target) for step in way)


def _beginnings(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [parts[:count] for count in range(1, len(parts) + 1)]


def unnamable(name: str) -> str:
    """Why Spark could not be told of a file: names are bytes, and those that are no text have none there. Empty for all others."""
    return "" if name == shown(name) else "its name is not UTF-8"


def shown(name: str | Path) -> str:
    """The name as text, whatever its bytes."""
    return os.fsencode(name).decode(errors="backslashreplace")
