"""Whether a remote creates a name for one of several rivals, and for one alone: all fencing between hosts stands on it.

Some servers ignore `If-None-Match`, some look and write in two steps. Asked when a home meets a remote for the first time.
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

from nosync.model.errors import Conflict, Invalid, NosyncError, OutcomeUnknown
from nosync.model.store import Remote

RIVALS = 8
ROUNDS = 5
FOLDER = "probe"


def check_creation(remote: Remote) -> None:
    """Raises `Invalid` for a remote on which two could create the same name. What it writes, it removes."""
    with ThreadPoolExecutor(RIVALS) as pool:
        for _ in range(ROUNDS):
            name = f"{FOLDER}/{uuid.uuid4().hex}"
            try:
                _check(remote, name, pool)
            finally:
                with suppress(NosyncError):
                    remote.delete(name)


def _check(remote: Remote, name: str, pool: ThreadPoolExecutor) -> None:
    together = Barrier(RIVALS)

    def attempt(number: int) -> bytes | None:
        content = f"rival {number}".encode()
        together.wait()
        try:
            remote.create(name, content)
        except (Conflict, OutcomeUnknown):
            return None
        return content

    won = [content for content in pool.map(attempt, range(RIVALS)) if content is not None]
    if len(won) > 1:
        raise _refused(remote, f"{len(won)} of {RIVALS} rivals created the same name")
    if won and remote.read(name) != won[0]:
        raise _refused(remote, "a name that was created has another content")
    with suppress(Conflict, OutcomeUnknown):
        remote.create(name, b"late")
        raise _refused(remote, "a name was created that was there already")


def _refused(remote: Remote, found: str) -> Invalid:
    return Invalid(
        f'remote "{remote.address}" cannot keep runs on two hosts apart: {found}',
        hint="Use a store whose conditional put (If-None-Match: *) is atomic, as S3, Google and Azure have it, or a folder.",
    )
