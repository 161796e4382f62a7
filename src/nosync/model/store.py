"""What a store must be able to do to hold a flow's journal and layers.

Names are relative, with slashes. A call that fails says what is known: `Unavailable` (nothing was written), `OutcomeUnknown` (read back
first). The simulation has stores of its own that fail in every way these errors allow.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from nosync.model.errors import Corrupt


def is_name(text: object) -> bool:
    """Whether a text can name a file of a store: it leads to no other file, however it was come by."""
    return isinstance(text, str) and "\0" not in text and not any(part in ("", ".", "..") for part in text.split("/"))


def is_own_name(text: object) -> bool:
    """Whether this library may have given the name: it has no other characters than those of ASCII."""
    return is_name(text) and str(text).isascii()


def checked(name: str) -> str:
    """The name; `Corrupt` for one that leads out of the store. Only a journal that was tampered with has such names."""
    if not is_name(name):
        raise Corrupt(f"{name!r} is no name of a file in a home", hint="Somebody else has written to the journal: use another copy of it.")
    return name


class Store(Protocol):
    """Named bytes."""

    def create(self, name: str, content: bytes) -> None:
        """Writes a new name, whole or not at all. `Conflict` when the name is taken."""

    def replace(self, name: str, content: bytes) -> None:
        """Writes a name, whole or not at all, whatever was there."""

    def read(self, name: str) -> bytes | None:
        """The content; None when there is no such name."""

    def read_all(self, names: Sequence[str]) -> dict[str, bytes]:
        """The contents of those that are there, many at once where each costs a request."""

    def exists(self, name: str) -> bool: ...

    def sizes(self, folder: str) -> dict[str, int]:
        """All names below a folder with their sizes in bytes."""

    def sizes_of(self, folders: Mapping[str, str]) -> dict[str, int]:
        """As `sizes`, of several folders at once: of each, the names that come behind the one given (in the order of their characters)."""

    def delete(self, name: str) -> None:
        """Afterwards the name is gone, also when it was never there."""


class Disk(Store, Protocol):
    """A store in the page cache of this host, until `sync` is called."""

    def alone(self) -> AbstractContextManager[object]:
        """A block in which no other process of this home is: for what must not come between looking and deleting. Kept short."""

    def size(self, name: str) -> int | None:
        """Bytes under a name; None when there is no such name."""

    def sync_files(self, names: Iterable[str]) -> None:
        """The contents survive a restart of the host. A file whose fsync failed is written anew and synced again before this returns."""

    def sync_folders(self, names: Iterable[str]) -> None:
        """The names themselves survive a restart of the host."""

    def clear_beginnings(self, generation: int) -> int:
        """Deletes what a crash left of files that were being written, apart from those of this process and of runs from this generation
        on; says how many there were.
        """


class Uploader(Protocol):
    """Brings files to a remote."""

    def upload(self, name: str, disk: Disk) -> int:
        """Copies a file of the disk; gives the bytes that travelled."""


class Remote(Store, Uploader, Protocol):
    """A store that survives the site. Layers travel to and from it as a whole. `address` says where it is, without credentials."""

    address: str

    def there(self, names: Sequence[str]) -> set[str]:
        """Those that exist."""

    def download(self, name: str, disk: Disk) -> bool:
        """Copies to the disk; False when there is no such name. The content is synced before the name appears: a name that is there is
        whole.
        """

    def download_all(self, names: Sequence[str], disk: Disk) -> Iterator[tuple[str, bool]]:
        """As `download`, several at once; says of each, in their order, whether it was there."""


def fingerprint(content: bytes) -> str:
    """Shows whether bytes are still what they were."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()
