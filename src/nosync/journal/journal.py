"""The append-only record of a flow, in its simplest form: one file of lines.

    HOME/journal      one line an entry: eight hex digits (CRC-32 of the rest), a space, the entry as JSON
    HOME/lock         held by the process that runs the flow

Promise: an entry counts once its line is whole; a torn last line is as if it had never been written. Appending does not wait for an fsync.
One process at a time appends; anybody may read meanwhile.
"""

import fcntl
import json
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from nosync.journal.entries import Entry, from_json, to_json
from nosync.journal.image import Image, fold
from nosync.model.errors import Conflict, Corrupt, Invalid

NAME = "journal"


def read(home: Path) -> Image:
    """The flow in this home as of now."""
    if not (home / NAME).exists():
        raise Invalid(f'"{home}" is not the home of a flow', hint="Give the folder that was passed as home= when the flow was started.")
    return fold(entry for entry, _ in _entries((home / NAME).read_bytes(), home))


def _entries(content: bytes, home: Path) -> Iterator[tuple[Entry, int]]:
    """Entries and where each ends. Stops at a torn end; anything broken before it is an error."""
    lines = content.split(b"\n")
    position = 0
    for number, line in enumerate(lines[:-1], start=1):
        entry = _parse(line)
        if entry is None:
            if number == len(lines) - 1 and not lines[-1]:
                return
            raise Corrupt(f'line {number} of the journal in "{home}" is damaged', hint="Restore the journal from a copy.")
        position += len(line) + 1
        yield entry, position


def _parse(line: bytes) -> Entry | None:
    checksum, _, text = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            return None
        return from_json(json.loads(text))
    except (ValueError, KeyError, TypeError):
        return None


class Journal:
    """The journal of a running flow. Holds the home: a second process gets `Conflict`."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._home = _hold(home)
        self.lock = threading.Lock()
        path = home / NAME
        content = path.read_bytes() if path.exists() else b""
        self.image = Image()
        end = 0
        for entry, position in _entries(content, home):
            self.image.apply(entry)
            end = position
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (held as long as the run)
        if end < len(content):
            self._file.truncate(end)

    def append(self, entry: Entry) -> None:
        """Records the entry and applies it to the image. Readers in other threads take `lock` to see whole entries only."""
        text = json.dumps(to_json(entry), separators=(",", ":"), default=str).encode()
        with self.lock:
            self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
            self.image.apply(entry)

    def close(self) -> None:
        self._file.close()
        self._home.close()


def _hold(home: Path) -> IO[str]:
    lock = open(home / "lock", "a+")  # noqa: SIM115 (held as long as the run)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise Conflict(
            f'home "{home}" is in use by {holder}', hint="Stop that run first, or give this one a home of its own."
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock
