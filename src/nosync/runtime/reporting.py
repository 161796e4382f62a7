"""Shows those outside the process how a run stands: HOME/status, replaced whole when that has changed, twice a second at most."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from nosync.duties.troubles import Troubles
from nosync.history.status import STATUS
from nosync.journal.journal import Journal
from nosync.journal.names import run_name
from nosync.model.errors import Fenced, NosyncError
from nosync.model.status import Live
from nosync.model.store import Disk

SECONDS = 0.5


class Reporter:
    """A thread that writes what `live` says, and has it measured before."""

    def __init__(self, live: Callable[[], Live], measure: Callable[[], None], journal: Journal, disk: Disk, troubles: Troubles) -> None:
        self._measure = measure
        self._live, self._journal, self._disk, self._troubles = live, journal, disk, troubles
        self._stopping = threading.Event()
        self._written: Live | None = None
        self._thread = threading.Thread(target=self._run, name="nosync status", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._write()
        while not self._stopping.wait(SECONDS):
            self._measure()
            self._write()

    def _write(self) -> None:
        live = self._live()
        if live == self._written:
            return
        try:
            _replace(self._journal, self._disk, live)
            self._written = live
            self._troubles.over("status")
        except NosyncError as error:
            self._troubles.met("status", error)

    def stop(self) -> None:
        """Leaves the last word."""
        self._stopping.set()
        self._thread.join()
        self._write()


def ended() -> Fenced:
    """What whoever still uses the journal of an ended run gets."""
    return Fenced("this run has ended", hint="Start the flow again.")


@contextmanager
def failing_start(journal: Journal, disk: Disk, stop: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Around what is left of a start once it has fenced others. If that fails, the file says so, and nothing more is recorded; `stop` ends
    what runs already.
    """
    try:
        yield
    except BaseException as error:
        words = error.message if isinstance(error, NosyncError) else f"{type(error).__name__}: {error}"
        with suppress(NosyncError):  # what went wrong first is what matters
            _replace(journal, disk, Live(journal.run, "failed", f"Failed: {words}"))
        journal.fence(ended())
        stop()
        raise


def _replace(journal: Journal, disk: Disk, live: Live) -> None:
    """A run that was followed by another leaves the file to that one."""
    if not disk.exists(run_name(journal.generation + 1)):
        disk.replace(STATUS, live.to_bytes())
