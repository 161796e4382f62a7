"""Shows those outside the process how a run stands: HOME/status, replaced whole when that has changed, twice a second at most."""

import threading
from collections.abc import Callable

from nosync.duties.troubles import Troubles
from nosync.history.status import STATUS
from nosync.journal.journal import Journal
from nosync.journal.names import run_name
from nosync.model.errors import NosyncError
from nosync.model.status import Live
from nosync.model.store import Disk

SECONDS = 0.5


class Reporter:
    """A thread that writes what `live` says. A run that was followed by another leaves the file to that one."""

    def __init__(self, live: Callable[[], Live], journal: Journal, disk: Disk, troubles: Troubles) -> None:
        self._live, self._disk, self._troubles = live, disk, troubles
        self._next_run = run_name(journal.generation + 1)
        self._stopping = threading.Event()
        self._written: Live | None = None
        self._thread = threading.Thread(target=self._run, name="nosync status", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._write()
        while not self._stopping.wait(SECONDS):
            self._write()

    def _write(self) -> None:
        live = self._live()
        if live == self._written:
            return
        try:
            if not self._disk.exists(self._next_run):
                self._disk.replace(STATUS, live.to_bytes())
            self._written = live
            self._troubles.over("status")
        except NosyncError as error:
            self._troubles.met("status", error)

    def stop(self) -> None:
        """Leaves the last word."""
        self._stopping.set()
        self._thread.join()
        self._write()
