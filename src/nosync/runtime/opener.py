"""Opens the next epoch while one computes, so that its record is on every tier by the time it matters.

As late as half of a usual epoch: what arrives until then need not wait for the epoch after. What fails here is reported, and done again by
the epoch itself.
"""

import threading
import time

from nosync.duties.troubles import Troubles
from nosync.runtime.epochs import Epochs

DUTY = "opening ahead"
JOIN_SECONDS = 5.0


class Opener:
    """A context around what computes and records an epoch."""

    def __init__(self, epochs: Epochs, troubles: Troubles) -> None:
        self._epochs, self._troubles = epochs, troubles
        self._usual = 0.0
        self._wake = threading.Condition()
        self._due: float | None = None
        self._stopping = False
        self.thread = threading.Thread(target=self._run, name="nosync opener", daemon=True)
        self.thread.start()

    def __enter__(self) -> None:
        self._begun, self._epoch = time.monotonic(), self._epochs.journal.image.epoch
        with self._wake:
            self._due = self._begun + self._usual / 2 if self._usual else None
            self._wake.notify()

    def __exit__(self, *_: object) -> None:
        with self._wake:
            self._due = None
        if self._epochs.journal.image.epoch == self._epoch:
            return
        took = time.monotonic() - self._begun
        self._usual = min(took, 0.7 * self._usual + 0.3 * took) if self._usual else took  # the first one may take long

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._stopping or self._due is not None)
                if self._stopping:
                    return
                due = self._due
                if due is not None and time.monotonic() < due:
                    self._wake.wait(timeout=due - time.monotonic())
                    continue
                self._due = None
            self._open()

    def _open(self) -> None:
        try:
            self._epochs.open_ahead()
            self._troubles.over(DUTY)
        except BaseException as error:
            self._troubles.met(DUTY, error)

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self.thread.join(JOIN_SECONDS)
