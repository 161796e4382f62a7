"""One process at a time in a folder: a lock that goes with its process, so that nobody finds it left behind."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nosync.model.errors import Unavailable
from nosync.state.private import make_folder

PATIENCE_SECONDS, LOOK_SECONDS = 30.0, 0.02


@contextmanager
def alone_in(folder: Path, patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Whoever else asks for the folder waits until the block ends. On file systems without locks, and without POSIX, nobody does."""
    make_folder(folder)
    handle = os.open(folder, os.O_RDONLY)
    try:
        _take(handle, folder, time.monotonic() + patience_seconds)
        yield
    finally:
        os.close(handle)  # the lock goes with it


def _take(handle: int, folder: Path, until: float) -> None:
    try:
        import fcntl
    except ImportError:
        return
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                hint = "Nothing was changed. End that process, if it hangs or was suspended, and start again."
                raise Unavailable(f'another process is just starting a flow on "{folder}"', hint=hint) from None
            time.sleep(LOOK_SECONDS)
        except OSError:
            return
