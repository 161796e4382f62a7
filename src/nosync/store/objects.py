"""Objects in a bucket, or in a folder that stands for one: where journal and layers survive the site.

Names of the disk are names of objects, except that Arrow files travel compressed (see `packing`) and have ".packed" behind their name
there. Nobody outside this module sees that ending.

Promise: an object is there whole or not at all. Files of any size travel in parts, in bounded memory.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from nosync.model.errors import Corrupt, OutcomeUnknown
from nosync.model.store import Disk, checked
from nosync.store.addresses import address_of, client_of, folder_of
from nosync.store.bucket import Bucket, CloudBucket
from nosync.store.disk import LocalDisk, failing_as, whole_file
from nosync.store.folder import FolderBucket
from nosync.store.packing import BLOCK, packed, unpacked

ENDING = ".packed"
REQUESTS_AT_ONCE = 16


def open_remote(url: str) -> "Objects":
    """The remote at an address, as `addresses` lists them. It may be unreachable: the first call on it shows."""
    if url.startswith("file:"):
        return Objects(url, FolderBucket(folder_of(urlsplit(url), url)))
    return Objects(url, CloudBucket(address_of(url), client_of(url, os.environ)))


class Objects:
    """The remote over one bucket. `address` is what may be shown and recorded; `url` may hold credentials."""

    def __init__(self, url: str, bucket: Bucket) -> None:
        self.url, self.address = url, address_of(url)
        self._bucket = bucket
        self._pool = ThreadPoolExecutor(REQUESTS_AT_ONCE, thread_name_prefix="nosync remote")

    def create(self, name: str, content: bytes) -> None:
        key = key_of(name)
        self._bucket.put(key, _packed(key, content), large=False, create=True)

    def replace(self, name: str, content: bytes) -> None:
        key = key_of(name)
        self._bucket.put(key, _packed(key, content), large=False)

    def read(self, name: str) -> bytes | None:
        parts = list(self._bucket.parts(key_of(name)))
        return b"".join(self._unpacked(name, iter(parts))) if parts else None

    def read_all(self, names: Sequence[str]) -> dict[str, bytes]:
        found = zip(names, self._pool.map(self.read, names), strict=True)
        return {name: content for name, content in found if content is not None}

    def exists(self, name: str) -> bool:
        return self._bucket.size(key_of(name)) is not None

    def sizes(self, folder: str) -> dict[str, int]:
        """As the protocol says. Sizes are those of the objects, compressed where they are."""
        return {name_of(key): size for key, size in self._bucket.sizes(folder).items()}

    def sizes_of(self, folders: Mapping[str, str]) -> dict[str, int]:
        found = self._pool.map(lambda item: self._bucket.sizes(item[0], f"{item[0]}/{item[1]}"), folders.items())
        return {name_of(key): size for sizes in found for key, size in sizes.items()}

    def there(self, names: Sequence[str]) -> set[str]:
        return {name for name, exists in zip(names, self._pool.map(self.exists, names), strict=True) if exists}

    def delete(self, name: str) -> None:
        self._bucket.delete(key_of(name))

    def upload(self, name: str, disk: Disk) -> int:
        """As the protocol says. Uploading again replaces the object by the same content. `Corrupt` when the disk has no such file.

        The object's size is asked for afterwards. Its content is verified by whoever fetches it, and had anew if it is damaged.
        """
        path, key = _path(disk, name), key_of(name)
        lengths: list[int] = []
        self._bucket.put(key, _blocks(path, _is_packed(key), lengths), large=_size_or_corrupt(path) > BLOCK)
        arrived = self._bucket.size(key)
        if arrived != sum(lengths):
            message = f'"{name}" has {arrived or 0} bytes on {self.address} instead of {sum(lengths)}'
            raise OutcomeUnknown(message, hint="It is sent again by itself; if this comes back, look at what lies between here and there.")
        return sum(lengths)

    def download(self, name: str, disk: Disk) -> bool:
        """As the protocol says. `Corrupt` when the object cannot be decompressed."""
        parts = self._bucket.parts(key_of(name))
        first = next(parts, None)
        if first is None:
            return False
        path = _path(disk, name)
        with failing_as(f'"{path}" was not written'), whole_file(path, sync=os.fsync) as file:
            for content in self._unpacked(name, chain([first], parts)):
                file.write(content)
        return True

    def download_all(self, names: Sequence[str], disk: Disk) -> Iterator[tuple[str, bool]]:
        yield from zip(names, self._pool.map(lambda name: self.download(name, disk), names), strict=True)

    def _unpacked(self, name: str, parts: Iterator[bytes]) -> Iterator[bytes]:
        """The content behind the parts of an object."""
        if not _is_packed(key_of(name)):
            yield from parts
            return
        try:
            yield from unpacked(parts)
        except OSError as error:
            raise Corrupt(
                f'"{name}" on {self.address} cannot be decompressed: {error}',
                hint="Recover it from another tier, or let it be computed again.",
            ) from error


def key_of(name: str) -> str:
    """The object that holds a name."""
    checked(name)
    return name + ENDING if name.endswith(".arrow") else name


def name_of(key: str) -> str:
    """The name that an object holds."""
    return key.removesuffix(ENDING) if _is_packed(key) else key


def _is_packed(key: str) -> bool:
    return key.endswith(".arrow" + ENDING)


def _packed(key: str, content: bytes) -> Iterator[bytes]:
    if not _is_packed(key):
        return iter([content])
    return (packed(content[start : start + BLOCK]) for start in range(0, len(content) or 1, BLOCK))


def _blocks(path: Path, pack: bool, lengths: list[int]) -> Iterator[bytes]:
    """What travels of a file, block by block; the length of each is added to the list. An empty file has one block too."""
    with failing_as(f'"{path}" could not be read'), open(path, "rb") as file:
        content = file.read(BLOCK)
        while content or not lengths:
            block = packed(content) if pack else content
            lengths.append(len(block))
            yield block
            content = file.read(BLOCK)


def _size_or_corrupt(path: Path) -> int:
    with failing_as(f'"{path}" could not be read'):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            raise Corrupt(f'"{path}" is not there', hint="Recover it from another tier, or let it be computed again.") from None


def _path(disk: Disk, name: str) -> Path:
    """Objects travel to and from files; disks of the simulation, which have none, go with remotes of its own."""
    return cast(LocalDisk, disk).path(name)
