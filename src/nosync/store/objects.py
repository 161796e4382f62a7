"""Objects in a bucket, or in a folder that stands for one: where journal and layers survive the site.

Names of the disk are names of objects, except that Arrow files travel compressed (see `packing`) and have ".packed" behind their name
there. Nobody outside this module sees that ending.

Promise: an object is there whole or not at all. Files of any size travel in parts, in bounded memory.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from nosync.model.errors import Corrupt, OutcomeUnknown, Unavailable
from nosync.model.store import Disk
from nosync.store.addresses import client_of, folder_of
from nosync.store.disk import LocalDisk, told, whole_file
from nosync.store.failures import from_remote, is_bucket_missing
from nosync.store.packing import BLOCK, packed, unpacked

ENDING = ".packed"
PART = 8 << 20
PARTS_AT_ONCE = 4


def open_remote(url: str) -> "Objects":
    """The remote at an address, as `addresses` lists them. It may be unreachable: the first call on it tells."""
    store = client_of(url, os.environ)
    if url.startswith("file:"):
        return Objects(url, store, _synced(LocalDisk(folder_of(urlsplit(url), url))))
    return Objects(url, store)


class Objects:
    """The remote over one client. `written` is called with the name of each object written, before the write counts."""

    def __init__(self, url: str, store: ObjectStore, written: Callable[[str], None] = lambda key: None) -> None:
        self.url = url
        self._store = store
        self._written = written

    def create(self, name: str, content: bytes) -> None:
        """As the protocol says; S3 is asked by `If-None-Match: *`.

        `Conflict` may speak of this very call: the client repeats a request whose answer was lost, and the first one may have succeeded.
        It may also come of a rival that then fails. So read back: one's own content means success, none means try again.
        """
        key = key_of(name)
        with self._writing(name):
            obstore.put(self._store, key, _packed(key, content), mode="create", use_multipart=False)
            self._written(key)

    def replace(self, name: str, content: bytes) -> None:
        key = key_of(name)
        with self._writing(name):
            obstore.put(self._store, key, _packed(key, content))
            self._written(key)

    def read(self, name: str) -> bytes | None:
        key = key_of(name)
        with self._reading(name):
            try:
                content = bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError as error:
                _not_for_want_of_a_bucket(error)
                return None
        return b"".join(self._unpacked(name, iter([content])))

    def exists(self, name: str) -> bool:
        """As the protocol says. A bucket that is missing has no names; `read` and `sizes` tell the difference."""
        with self._reading(name):
            try:
                obstore.head(self._store, key_of(name))
            except FileNotFoundError:
                return False
            return True

    def sizes(self, folder: str) -> dict[str, int]:
        """As the protocol says. Sizes are those of the objects, compressed where they are."""
        with self._reading(folder):
            chunks = obstore.list(self._store, folder.strip("/") or None)
            return {name_of(found["path"]): found["size"] for chunk in chunks for found in chunk}

    def delete(self, name: str) -> None:
        with self._writing(name):
            try:
                obstore.delete(self._store, key_of(name))
            except FileNotFoundError as error:
                _not_for_want_of_a_bucket(error)

    def upload(self, name: str, disk: Disk) -> int:
        """As the protocol says. Uploading again replaces the object by the same content. `Corrupt` when the disk has no such file.

        The object's size is asked for afterwards. Its content is verified by whoever fetches it, and had anew if it is damaged.
        """
        path, key = _path(disk, name), key_of(name)
        lengths: list[int] = []
        with self._writing(name):
            blocks = _blocks(path, _is_packed(key), lengths)
            if _size(path) <= BLOCK:
                obstore.put(self._store, key, b"".join(blocks), use_multipart=False)
            else:
                obstore.put(self._store, key, blocks, use_multipart=True, chunk_size=PART, max_concurrency=PARTS_AT_ONCE)
            self._written(key)
            arrived = obstore.head(self._store, key)["size"]
        if arrived != sum(lengths):
            message = f'"{name}" has {arrived} bytes on {self.url} instead of {sum(lengths)}'
            raise OutcomeUnknown(message, hint="It is sent again by itself; if this comes back, look at what lies between here and there.")
        return sum(lengths)

    def download(self, name: str, disk: Disk) -> bool:
        """As the protocol says. `Corrupt` when the object cannot be decompressed."""
        parts = self._parts(name)
        first = next(parts, None)
        if first is None:
            return False
        path = _path(disk, name)
        with told(f'"{path}" was not written'), whole_file(path) as file:
            for content in self._unpacked(name, chain([first], parts)):
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return True

    def _parts(self, name: str) -> Iterator[bytes]:
        """The object in parts, each a request of its own, so that a large one runs into no limit of time. Nothing if there is none."""
        key = key_of(name)
        with self._reading(name):
            try:
                found = obstore.get(self._store, key)
            except FileNotFoundError as error:
                _not_for_want_of_a_bucket(error)
                return
            size = found.meta["size"]
            if size <= PART:
                yield bytes(found.bytes())
                return
            for start in range(0, size, PART):
                yield bytes(obstore.get_range(self._store, key, start=start, end=min(start + PART, size)))

    def _unpacked(self, name: str, parts: Iterator[bytes]) -> Iterator[bytes]:
        """The content behind the parts of an object."""
        if not _is_packed(key_of(name)):
            yield from parts
            return
        try:
            yield from unpacked(parts)
        except OSError as error:
            raise Corrupt(
                f'"{name}" on {self.url} cannot be decompressed: {error}', hint="Recover it from another tier, or let it be computed again."
            ) from error

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise from_remote(error, f'"{name}" was not written to {self.url}', write=True) from error

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise from_remote(error, f'"{name}" could not be read from {self.url}', write=False) from error


def key_of(name: str) -> str:
    """The object that holds a name."""
    return name + ENDING if name.endswith(".arrow") else name


def name_of(key: str) -> str:
    """The name that an object holds."""
    return key.removesuffix(ENDING) if _is_packed(key) else key


def _is_packed(key: str) -> bool:
    return key.endswith(".arrow" + ENDING)


def _packed(key: str, content: bytes) -> bytes:
    if not _is_packed(key):
        return content
    return b"".join(packed(content[start : start + BLOCK]) for start in range(0, len(content) or 1, BLOCK))


def _blocks(path: Path, pack: bool, lengths: list[int]) -> Iterator[bytes]:
    """What travels of a file, block by block; the length of each is added to the list. An empty file has one block too."""
    with told(f'"{path}" could not be read'), open(path, "rb") as file:
        content = file.read(BLOCK)
        while content or not lengths:
            block = packed(content) if pack else content
            lengths.append(len(block))
            yield block
            content = file.read(BLOCK)


def _size(path: Path) -> int:
    with told(f'"{path}" could not be read'):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            raise Corrupt(f'"{path}" is not there', hint="Recover it from another tier, or let it be computed again.") from None


def _path(disk: Disk, name: str) -> Path:
    """Objects travel to and from files; disks of the simulation, which have none, go with remotes of its own."""
    return cast(LocalDisk, disk).path(name)


def _not_for_want_of_a_bucket(error: FileNotFoundError) -> None:
    """No such name, which is an answer; unless there is no such bucket, which is none."""
    if is_bucket_missing(error):
        raise error


def _synced(disk: LocalDisk) -> Callable[[str], None]:
    """For a folder that stands for a bucket: `obstore` writes files whole, but leaves them in the page cache."""

    def sync(key: str) -> None:
        try:
            disk.sync_files([key])
            disk.sync_folders([key])
        except Unavailable as error:
            raise OutcomeUnknown(error.message, error.hint) from error

    return sync
