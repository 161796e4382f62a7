"""Tells listeners of a run what happens, on a thread of its own: nothing that they do holds up an epoch or ends the run."""

import logging
import queue
import threading
from collections.abc import Sequence

from nosync.model.events import Event, Listening

MOST_WAITING = 10_000  # events; a listener that is so far behind misses some
END_SECONDS = 5.0


class Listeners:
    """Of one run. `tell` comes back at once."""

    def __init__(self, flow: str, listeners: Sequence[Listening]) -> None:
        self._listeners, self._log = listeners, logging.getLogger(f"nosync.{flow}")
        self._events: queue.Queue[Event | None] = queue.Queue(MOST_WAITING)
        self.thread = threading.Thread(target=self._run, name=f"nosync {flow} listeners", daemon=True)
        self.thread.start()

    def tell(self, event: Event) -> None:
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._log.warning("listeners are %d events behind: event %r is left out", MOST_WAITING, event.kind)

    def stop(self) -> None:
        """Waits a while until they have heard everything."""
        self._events.put(None)
        if threading.current_thread() is not self.thread:
            self.thread.join(END_SECONDS)

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            for listener in self._listeners:
                try:
                    listener(event)
                except Exception as error:
                    self._log.warning("a listener failed with %r: %s: %s", event.kind, type(error).__name__, error)
