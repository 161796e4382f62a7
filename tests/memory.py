"""How much memory a piece of work needs."""

import threading
from collections.abc import Callable
from pathlib import Path


def anonymous_bytes() -> int:
    """Memory of this process that is not a view of a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def growth_during(work: Callable[[], None]) -> int:
    """How much memory the work needed at its worst."""
    before, worst, done = anonymous_bytes(), 0, threading.Event()

    def watch() -> None:
        nonlocal worst
        while not done.wait(0.002):
            worst = max(worst, anonymous_bytes() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return worst
