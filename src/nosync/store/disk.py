"""Files below a folder: where journal and layers live first.

Promise: a name shows its whole content or is not there, also after a crash of the process. Writing ends in the page cache; what
`sync_files` and `sync_folders` returned from survives a restart of the host. Files and folders are for their owner alone.

A file is written as `.<random>` beside its name and then linked or renamed to it; what tasks and sources write begins in a similar way
(`BEGINNING`). No listing shows files that begin with a dot.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nosync.model.errors import Conflict
from nosync.model.run import is_own, own_name
from nosync.model.store import checked
from nosync.state.private import make_folder, open_private
from nosync.store.alone import alone_in
from nosync.store.failures import FORBIDDEN, from_disk

SYNCS_AT_ONCE = 8
# Of this disk, of input, of layers. Nothing else is ever taken for the rest of a crash.
BEGINNING = re.compile(r"\.(?P<name>[0-9a-f]{32})(\.arrow)?|\.\d+-\d+-(?P<generation>\d+)\.[0-9a-f]+-[0-9a-f]+\.arrow\.\d+-\d+")


class LocalDisk:
    """The store in a folder of this host. The folder is made by the first write; reading makes nothing."""

    def __init__(self, root: Path, fsync: Callable[[int], None] = os.fsync) -> None:
        self.root = root
        self._fsync = fsync
        self._root_synced = False
        self._known: set[Path] = set()  # folders whose own names are synced
        self._pool = ThreadPoolExecutor(SYNCS_AT_ONCE, thread_name_prefix="nosync sync")

    def path(self, name: str) -> Path:
        """The file behind a name."""
        return self.root / checked(name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """See `Disk`."""
        with failing_as(f'"{self.root}" could not be opened'), alone_in(self.root):
            yield

    def create(self, name: str, content: bytes) -> None:
        path = self.path(name)
        with failing_as(f'"{path}" was not created'):
            try:
                with whole_file(path, place=os.link) as file:
                    file.write(content)
            except FileExistsError:
                raise Conflict(f'"{path}" exists already', hint="Read it back to see who wrote it.") from None

    def replace(self, name: str, content: bytes) -> None:
        path = self.path(name)
        with failing_as(f'"{path}" was not written'), whole_file(path) as file:
            file.write(content)

    def read(self, name: str) -> bytes | None:
        path = self.path(name)
        with failing_as(f'"{path}" could not be read'):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def read_all(self, names: Sequence[str]) -> dict[str, bytes]:
        return {name: content for name in names if (content := self.read(name)) is not None}

    def exists(self, name: str) -> bool:
        return self.size(name) is not None

    def size(self, name: str) -> int | None:
        path = self.path(name)
        with failing_as(f'"{path}" could not be looked up'):
            try:
                facts = os.stat(path)
            except FileNotFoundError:
                return None
        return facts.st_size if stat.S_ISREG(facts.st_mode) else None

    def sizes(self, folder: str) -> dict[str, int]:
        with failing_as(f'"{self.root / folder}" could not be listed'):
            return dict(_files_below(self.root / folder, folder.strip("/")))

    def sizes_of(self, folders: Mapping[str, str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder, after in folders.items():
            with failing_as(f'"{self.root / folder}" could not be listed'):
                found |= _files_below(self.root / folder, folder, after)
        return found

    def delete(self, name: str) -> None:
        path = self.path(name)
        with failing_as(f'"{path}" could not be deleted'), suppress(FileNotFoundError):
            os.unlink(path)

    def sync_files(self, names: Iterable[str]) -> None:
        """As the protocol says. Names that are gone have nothing to lose and are skipped.

        All at once: the file system then commits them together, ten times as fast as one after the other.
        """
        self._all(self._sync_if_there, [self.path(name) for name in names])

    def _sync_if_there(self, path: Path) -> None:
        with failing_as(f'"{path}" is not synced'), suppress(FileNotFoundError):
            self._sync_file(path)

    def _all(self, act: Callable[[Path], None], paths: list[Path]) -> None:
        """Tries every one of them, then raises what went wrong first."""
        tried = [self._pool.submit(act, path) for path in paths]
        wait(tried)
        for one in tried:
            one.result()

    def sync_folders(self, names: Iterable[str]) -> None:
        """As the protocol says: the folder of each name; those above it once, since they only change when a folder is made."""
        folders = {folder for folder in {self.path(name).parent for name in names} if folder.is_dir()}  # one made later is still new then
        above = {parent for folder in folders - self._known for parent in folder.parents if parent.is_relative_to(self.root)}
        self._all(self._sync_folder, sorted(folders | above))
        self._known |= folders
        if folders and not self._root_synced:
            self._sync_way_to_root()

    def _sync_folder(self, folder: Path) -> None:
        with failing_as(f'folder "{folder}" is not synced'), suppress(FileNotFoundError):
            self._sync(folder)

    def clear_beginnings(self, generation: int) -> int:
        """Deletes what other processes left of files that were being written, apart from layers of this generation and later ones; says
        how many there were. No clock is asked: it may jump. Hidden files of others, and hidden folders, are left alone.
        """
        found = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in [os.path.join(folder, name) for name in files if _is_left(name, generation)]:
                with failing_as(f'"{path}" could not be deleted'), suppress(FileNotFoundError):
                    os.unlink(path)
                    found += 1
        return found

    def _sync_file(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            try:
                self._fsync(descriptor)
            except OSError:
                self._write_anew(file, path)

    def _write_anew(self, file: IO[bytes], path: Path) -> None:
        """After a failed fsync the system may hold the pages for clean, so that a second fsync would succeed and mean nothing.

        If it has dropped the pages as well, the copy is of older bytes: the checksums of layers and records show it.
        """
        with whole_file(path, sync=self._fsync) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        self._sync(path.parent)

    def _sync_way_to_root(self) -> None:
        """A home that was just made is a name in the folder above. Folders that this user may not even open were not made by it."""
        for folder in self.root.absolute().parents:
            with failing_as(f'folder "{folder}" is not synced'):
                try:
                    self._sync(folder)
                except OSError as error:
                    if error.errno not in FORBIDDEN:
                        raise
        self._root_synced = True

    def _sync(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            self._fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_left(name: str, generation: int) -> bool:
    """Whether a file is the beginning of one that nobody goes on with."""
    found = BEGINNING.fullmatch(name)
    if found is None:
        return False
    return not is_own(found["name"]) if found["name"] else int(found["generation"]) < generation


@contextmanager
def whole_file(
    path: Path, place: Callable[[str, Path], None] = os.replace, sync: Callable[[int], None] | None = None
) -> Iterator[IO[bytes]]:
    """A file that gets its name when the block has ended well; otherwise nothing is left of it. Folders are made as needed.

    With `os.link` to place it, a name that is taken stays as it is, and `FileExistsError` is raised. `sync` is called with its
    descriptor before it gets its name.
    """
    beginning = f"{path.parent}/.{own_name()}"
    try:
        with _opened(beginning, path.parent) as file:
            yield file
            if sync is not None:
                file.flush()
                sync(file.fileno())
        place(beginning, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beginning)


def _opened(beginning: str, folder: Path) -> IO[bytes]:
    try:
        return open(beginning, "xb", opener=open_private)
    except FileNotFoundError:
        make_folder(folder)
        return open(beginning, "xb", opener=open_private)


def _files_below(folder: Path, name: str, after: str = "") -> Iterator[tuple[str, int]]:
    """Files may come and go meanwhile: what is there all the time is listed."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            below = f"{name}/{entry.name}" if name else entry.name
            if entry.is_dir():
                yield from _files_below(folder / entry.name, below)
            elif not entry.name.startswith(".") and entry.name > after:
                with suppress(FileNotFoundError):
                    yield below, entry.stat().st_size


@contextmanager
def failing_as(action: str) -> Iterator[None]:
    """Failures of the system as `Unavailable`, with what they mean."""
    try:
        yield
    except OSError as error:
        raise from_disk(error, action) from error
