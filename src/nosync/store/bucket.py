"""Objects under keys, in a bucket of an object store or in memory. Called by `Objects` alone.

Promise: an object is there whole or not at all. A call that fails says what is known, as `model.store` has it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from nosync.model.secrets import redacted
from nosync.store.failures import from_remote, is_bucket_missing

PART = 8 << 20
PARTS_AT_ONCE = 4


class Bucket(Protocol):
    """What objects need of the place where they are."""

    def put(self, key: str, blocks: Iterator[bytes], *, large: bool, create: bool = False) -> None:
        """Writes an object of several blocks; `large` ones are not held in memory. `Conflict` when it is to be created and is there."""

    def parts(self, key: str) -> Iterator[bytes]:
        """The object in parts; nothing if there is none."""

    def size(self, key: str) -> int | None:
        """None when there is no such object."""

    def sizes(self, prefix: str, after: str = "") -> dict[str, int]:
        """All keys below a folder, with the sizes of their objects; those that come behind one given."""

    def delete(self, key: str) -> None:
        """Afterwards the key is gone, also when it was never there."""


class CloudBucket:
    """A bucket that is reached through one client. `address` names it in messages."""

    def __init__(self, address: str, client: ObjectStore) -> None:
        self._address, self._client = address, client

    def put(self, key: str, blocks: Iterator[bytes], *, large: bool, create: bool = False) -> None:
        """As the protocol says; S3 is asked by `If-None-Match: *`.

        `Conflict` may speak of this very call: the client repeats a request whose answer was lost, and the first one may have succeeded.
        It may also come of a rival that then fails. So read back: one's own content means success, none means try again.
        """
        with self._failing(f'"{key}" was not written to', write=True):
            if large:
                obstore.put(self._client, key, blocks, use_multipart=True, chunk_size=PART, max_concurrency=PARTS_AT_ONCE)
            else:
                obstore.put(self._client, key, b"".join(blocks), use_multipart=False, mode="create" if create else "overwrite")

    def parts(self, key: str) -> Iterator[bytes]:
        """As the protocol says; each a request of its own, so that a large one runs into no limit of time."""
        with self._failing(f'"{key}" could not be read from', write=False):
            try:
                found = obstore.get(self._client, key)
            except FileNotFoundError as error:
                _not_for_want_of_a_bucket(error)
                return
            size = found.meta["size"]
            if size <= PART:
                yield bytes(found.bytes())
                return
            for start in range(0, size, PART):
                yield bytes(obstore.get_range(self._client, key, start=start, end=min(start + PART, size)))

    def size(self, key: str) -> int | None:
        """As the protocol says. A bucket that is missing has no keys; `parts` and `sizes` make the difference."""
        with self._failing(f'"{key}" could not be looked up at', write=False):
            try:
                return int(obstore.head(self._client, key)["size"])
            except FileNotFoundError:
                return None

    def sizes(self, prefix: str, after: str = "") -> dict[str, int]:
        with self._failing(f'"{prefix}" could not be listed at', write=False):
            chunks = obstore.list(self._client, prefix.strip("/") or None, offset=after or None)
            return {found["path"]: found["size"] for chunk in chunks for found in chunk}

    def delete(self, key: str) -> None:
        with self._failing(f'"{key}" was not deleted at', write=True):
            try:
                obstore.delete(self._client, key)
            except FileNotFoundError as error:
                _not_for_want_of_a_bucket(error)

    @contextmanager
    def _failing(self, action: str, write: bool) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            cause = error if redacted(str(error)) == str(error) else None  # clients quote requests, which may be signed
            raise from_remote(error, f"{action} {self._address}", write=write) from cause


def _not_for_want_of_a_bucket(error: FileNotFoundError) -> None:
    """No such key, which is an answer; unless there is no such bucket, which is none."""
    if is_bucket_missing(error):
        raise error
