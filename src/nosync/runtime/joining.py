"""What is only added to a program gets its past beside the stream: the epochs of the rest go on meanwhile, and it joins them between two.

A thread rebuilds it from recorded input as far as the newest epoch, then as far as the newest one of then, and so on, until little is left
(`Rebuild`). That little is done between two epochs, in the run's own thread, and one record says that the program has taken over. Until
then the home belongs to the program without what is new: nothing that ends the run before, a crash among them, leaves a trace of it.

Nothing is thinned, trimmed or swept meanwhile: input and layers of the past are read, and layers made that no record names yet.
"""

import threading
import time
from dataclasses import dataclass, replace

from nosync.duties.troubles import Troubles
from nosync.journal.journal import Journal
from nosync.model.errors import NosyncError, Unavailable, unexpected
from nosync.model.status import Recovery
from nosync.runtime.change import base
from nosync.runtime.rebuilding import ProgramChange, Rebuild
from nosync.runtime.takeover import Takeover, Taking
from nosync.spark.engine import SparkEngine

SHORT_SECONDS = 1.0  # what took no longer may be waited for
RETRY_SECONDS = 1.0
DUTY = "rebuild"


class GivenUp(Exception):
    """The run shall end."""


@dataclass
class Joining:
    """Of one run. `engine` has the whole program; it computes the run's epochs once all have joined."""

    change: ProgramChange
    taking: Taking
    journal: Journal
    engine: SparkEngine
    troubles: Troubles
    near: bool = False  # little is left

    def __post_init__(self) -> None:
        names = ", ".join(base(name) for name in self.change.difference.fresh)
        self.progress = Recovery(f"rebuilding {names}")
        self._stopping = threading.Event()
        self._error: NosyncError | None = None
        self.rebuild: Rebuild = replace(self.taking, report=self._report).rebuild(self.change)
        self.engine.yield_to_epochs("rebuilding")
        self._thread = threading.Thread(target=self._run, name="nosync joining", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def step(self) -> Takeover | None:
        """Called between epochs: what the program found once it has taken over; None while it is on its way. Raises why it never will."""
        if self._error is not None:
            raise self._error
        if not self.near:
            return None
        if self._thread.is_alive():
            self._thread.join()
        self.engine.lead()
        self.rebuild.go_on()
        return self.taking.record(self.change, self.rebuild)

    def stop(self) -> None:
        """Gives it up."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self.engine.give_up()
            self._thread.join()

    def _report(self, progress: Recovery) -> None:
        if self._stopping.is_set():
            raise GivenUp
        self.progress = progress

    def _run(self) -> None:
        try:
            before: int | None = None
            while not self.near:
                begun = time.monotonic()
                self._rebuild()
                left, took = self.journal.image.epoch - self.rebuild.epoch, time.monotonic() - begun
                self.near = left <= 1 or took <= SHORT_SECONDS or (before is not None and left >= before)
                before = left
        except BaseException as error:
            if not self._stopping.is_set():
                self._error = error if isinstance(error, NosyncError) else unexpected(DUTY, error)

    def _rebuild(self) -> None:
        """A disk or remote that fails for a while holds up nobody else."""
        while True:
            try:
                self.rebuild.go_on()
                self.troubles.over(DUTY)
                return
            except Unavailable as error:
                self.troubles.met(DUTY, error)
                if self._stopping.wait(RETRY_SECONDS):
                    raise GivenUp from None
