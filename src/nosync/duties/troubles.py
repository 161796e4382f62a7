"""What went wrong behind the stream: counted, kept until somebody asks, and logged once.

Nothing that runs behind the stream may fail in silence. Whoever catches an error there reports it here, tries again where that makes sense,
and says when it works again; `status` shows all of it.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from nosync.model.errors import Corrupt, NosyncError
from nosync.model.safety import Problem
from nosync.model.status import Trouble
from nosync.model.store import Disk
from nosync.recovery.suspicion import suspect

log = logging.getLogger("nosync")


class Troubles:
    """By duty. Threads may call it at once."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Trouble] = {}

    def met(self, duty: str, error: BaseException) -> None:
        """One more error of a duty."""
        message, now = _words(error), self._clock()
        with self._lock:
            known = self._known.get(duty)
            since = now if known is None or known.since is None else known.since
            self._known[duty] = Trouble(duty, known.count + 1 if known else 1, message, now, since)
        if known is None or known.since is None or known.message != message:
            log.warning("%s: %s", duty, message)

    def over(self, duty: str) -> None:
        """The duty works, or works again."""
        with self._lock:
            known = self._known.get(duty)
            if known is not None:
                self._known[duty] = replace(known, since=None)

    def problem(self, *duties: str) -> Problem | None:
        """Why one of these stands still now."""
        with self._lock:
            found = [self._known[duty] for duty in duties if duty in self._known]
        return next((Problem(one.message, one.since) for one in found if one.since is not None), None)

    def all(self) -> tuple[Trouble, ...]:
        with self._lock:
            return tuple(self._known.values())

    def damage(self, disk: Disk, error: NosyncError) -> None:
        """Leaves word of damaged bytes for the next start, where that is what the error is about."""
        if isinstance(error, Corrupt):
            try:
                suspect(disk, error)
            except NosyncError as failure:
                self.met("note of damage", failure)


def _words(error: BaseException) -> str:
    text = str(error) if isinstance(error, NosyncError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
