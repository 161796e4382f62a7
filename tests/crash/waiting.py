"""Waiting for what happens in other threads and processes: looks again and again, and gives up at a deadline."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 600.0


def until(condition: Callable[[], object], seconds: float = DEADLINE_SECONDS, instead: Callable[[], object] = lambda: "") -> None:
    """Returns once the condition holds; `instead` says what was there."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} s: {instead()}"
        time.sleep(0.02)
