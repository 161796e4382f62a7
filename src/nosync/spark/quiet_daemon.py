"""A worker of Spark's whose JVM has gone ends without a word: nobody is there who could do anything about it.

PySpark's daemon, from which workers are forked, prints a traceback then, over whatever a person sees at the end of a run. Called in the
daemon of sessions that we make, and in each worker of other sessions: there it is the worker's copy of the daemon that falls silent.
"""

import sys
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

DAEMON = "pyspark.daemon"


def quiet_daemon() -> None:
    """In this process and those that are forked from it, where PySpark's daemon is there at all: run by Spark, or imported by another."""
    for daemon in (sys.modules["__main__"], sys.modules.get(DAEMON)):
        if daemon is not None and daemon.__spec__ is not None and daemon.__spec__.name == DAEMON:
            quiet = {"print_exc": _unless_closed(traceback.print_exc), "format_exc": traceback.format_exc}
            vars(daemon).update(print=_unless_closed(print), traceback=SimpleNamespace(**quiet))


def _unless_closed(say: Callable[..., None]) -> Callable[..., None]:
    def call(*words: Any, **options: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
            say(*words, **options)

    return call
