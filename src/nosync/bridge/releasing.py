"""What the JVM keeps for objects here, let go of when nobody speaks of those any more.

Python collects garbage wherever it happens to be, also in the middle of a call to the JVM. A finalizer that called the JVM there would take
that call's answer for its own, on the same connection, and leave it another's: "org.apache does not exist in the JVM", or worse, a wrong
answer. So finalizers only leave word, and a thread of its own, with a connection of its own, makes the calls.
"""

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from py4j.protocol import Py4JError

_left: SimpleQueue[Callable[[], object]] = SimpleQueue()  # may be put to from a finalizer, unlike `queue.Queue`
_started = threading.Lock()
_worker: threading.Thread | None = None


def when_gone(owner: object, release: Callable[[], object]) -> Callable[[], object]:
    """Calls `release` some time after the owner is gone, or after what is returned was called. Not at the end of the process: the JVM
    ends with it.
    """
    _start()
    finalizer = weakref.finalize(owner, _left.put, partial(_call, release))
    finalizer.atexit = False
    return finalizer


def all_released() -> None:
    """Waits until everything is let go of whose owner is gone by now."""
    _start()
    done = threading.Event()
    _left.put(done.set)
    done.wait()


def _start() -> None:
    global _worker
    with _started:
        if _worker is None or not _worker.is_alive():
            _worker = threading.Thread(target=_work, name="nosync-releasing", daemon=True)
            _worker.start()


def _work() -> None:
    while True:
        _left.get()()


def _call(release: Callable[[], object]) -> None:
    with suppress(Py4JError, OSError):  # the JVM is gone already
        release()
