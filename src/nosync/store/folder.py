"""A folder that stands for a bucket.

Promise: what can be read here survives a restart of the host. Content is synced before its name appears, so a failed fsync leaves
nothing that could be mistaken for written. A name whose folder could not be synced is answered for only once the folder is synced;
so are names that an earlier process left.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from nosync.model.errors import Conflict, OutcomeUnknown, Unavailable
from nosync.store.bucket import PART
from nosync.store.disk import LocalDisk, failing_as, whole_file


class FolderBucket:
    """Objects are files, keys their names."""

    def __init__(self, root: Path, fsync: Callable[[int], None] = os.fsync) -> None:
        self._disk = LocalDisk(root, fsync)
        self._fsync = fsync
        self._unsynced: set[Path] = set()  # folders in which a name may vanish
        self._trusted: set[Path] = set()  # folders whose names were synced once by this process

    def put(self, key: str, blocks: Iterator[bytes], *, large: bool, create: bool = False) -> None:
        path = self._disk.path(key)
        with failing_as(f'"{path}" was not written'):
            try:
                with whole_file(path, os.link if create else os.replace, self._fsync) as file:
                    for block in blocks:
                        file.write(block)
            except FileExistsError:
                raise Conflict(f'"{path}" exists already', hint="Read it back to see who wrote it.") from None
        self._unsynced.add(path.parent)
        try:
            self._sync_pending_folders()
        except Unavailable as error:
            raise OutcomeUnknown(error.message, error.hint) from error

    def parts(self, key: str) -> Iterator[bytes]:
        path = self._disk.path(key)
        self._trust(path.parent)
        with failing_as(f'"{path}" could not be read'), suppress(FileNotFoundError, IsADirectoryError), open(path, "rb") as file:
            yield file.read(PART)
            while part := file.read(PART):
                yield part

    def size(self, key: str) -> int | None:
        self._trust(self._disk.path(key).parent)
        return self._disk.size(key)

    def sizes(self, prefix: str, after: str = "") -> dict[str, int]:
        found = {key: size for key, size in self._disk.sizes(prefix).items() if key > after}
        self._trust(*{self._disk.path(key).parent for key in found})
        return found

    def delete(self, key: str) -> None:
        self._disk.delete(key)

    def _trust(self, *folders: Path) -> None:
        """Raises where a name that is seen there may vanish."""
        self._unsynced |= set(folders) - self._trusted
        self._sync_pending_folders()

    def _sync_pending_folders(self) -> None:
        for folder in list(self._unsynced):
            self._disk.sync_folders([str(folder.relative_to(self._disk.root) / "name")])
            self._unsynced.discard(folder)
            self._trusted.add(folder)
