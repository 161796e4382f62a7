"""Follows a run until it ends, epoch by epoch.

Promise: every epoch is emitted once and in order, also those that end between the last look and the end of the run. A failed run raises its
error after them.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any, Protocol

LOOK_SECONDS = 0.2


class Followed(Protocol):
    """What following needs of a run."""

    @property
    def recentProgress(self) -> Sequence[dict[str, Any]]: ...  # noqa: N802 (PySpark's name)

    def awaitTermination(self, timeout: float | None = None) -> bool | None: ...  # noqa: N802 (PySpark's name)

    def stop(self) -> None: ...


def follow(
    run: Followed,
    report: Callable[[dict[str, Any]], None],
    look: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda words: None,
) -> None:
    """Until the run ends by itself, or somebody asks for the end: then after the current epoch. `look` is called before each report."""
    reported = 0
    with _asked_to_stop() as asked:
        ended = False
        try:
            while not ended and not asked.is_set():
                look()
                ended = bool(run.awaitTermination(LOOK_SECONDS))
                look()
                reported = _report_new(run, reported, report)
            if not ended:
                say("stopping after this epoch")
                run.stop()
                run.awaitTermination(0)  # raises if the last epoch failed
        finally:
            _report_new(run, reported, report)


def _report_new(run: Followed, reported: int, report: Callable[[dict[str, Any]], None]) -> int:
    for progress in run.recentProgress:
        if progress["epoch"] > reported:
            report(progress)
            reported = progress["epoch"]
    return reported


@contextmanager
def _asked_to_stop() -> Iterator[Event]:
    """Set at the first Ctrl-C or SIGTERM; the second Ctrl-C interrupts.

    Replaces PySpark's own handler, which would cancel the jobs of the current epoch.
    """
    asked = Event()

    def handle(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
