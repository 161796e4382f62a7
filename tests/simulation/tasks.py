"""Threads that hand over to each other only where the seed says so: at storage calls, and where one waits for a lock of another.

Each step of a thread is a greenlet. Everything happens in one thread of the system, so a history is the same whenever it is run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from greenlet import getcurrent, greenlet

ROOMS = ("nosync.journal", "nosync.tiers", "nosync.duties", "nosync.recovery", "nosync.runtime.epochs", "nosync.peers.arrivals")


class Task:
    """A step under way. `waits_for` is the lock that it cannot go on without; `newest` the newest run when it began, or last touched a
    store.
    """

    def __init__(self, act: Callable[[], object], newest: int = 0) -> None:
        self.greenlet = greenlet(act)
        self.waits_for: Lock | None = None
        self.newest = newest
        self.killed = False

    @property
    def runnable(self) -> bool:
        return self.waits_for is None or self.waits_for.owner is None

    @property
    def done(self) -> bool:
        return bool(self.greenlet.dead)


class Tasks:
    """Who runs now. The history itself is nobody's task: it resumes them, one at a time."""

    def __init__(self) -> None:
        self.current: Task | None = None

    def resume(self, task: Task) -> Any:
        """Goes on until the task hands over or ends; gives what it returned. Raises what it raised."""
        self.current, task.greenlet.parent = task, getcurrent()
        try:
            return task.greenlet.switch()
        finally:
            self.current = None

    def pause(self) -> None:
        """Called by a task: others go on, and it will be resumed."""
        parent = getcurrent().parent
        assert self.current is not None and parent is not None
        parent.switch()

    def kill(self, task: Task, error: BaseException) -> None:
        """The task raises the error where it stands, and comes to its end."""
        self.current, task.greenlet.parent = task, getcurrent()
        try:
            task.greenlet.throw(error)
        except BaseException as raised:
            if raised is not error and type(raised) is not type(error):
                raise
        finally:
            self.current = None

    @contextmanager
    def locks(self) -> Iterator[None]:
        """Whoever makes a lock in the rooms of the durable core gets one that hands over instead of blocking."""
        names = SimpleNamespace(Lock=partial(Lock, self, False), RLock=partial(Lock, self, True), Condition=threading.Condition)
        with ExitStack() as stack:
            for name, module in list(sys.modules.items()):
                if name.startswith(ROOMS) and hasattr(module, "threading"):
                    stack.enter_context(patch.object(module, "threading", names))
            yield


NOBODY = object()


class Lock:
    """As `threading.Lock` and `threading.RLock`, between tasks."""

    def __init__(self, tasks: Tasks, again: bool) -> None:
        self.tasks, self.again = tasks, again
        self.owner: object | None = None
        self.depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        task = self.tasks.current
        me = task or NOBODY
        if self.owner is me and not self.again:
            raise AssertionError("a thread waits for itself")
        while self.owner is not None and self.owner is not me:
            assert task is not None, "a lock is held by a task that does not run"
            task.waits_for = self
            self.tasks.pause()
        if task is not None:
            task.waits_for = None
        self.owner, self.depth = me, self.depth + 1
        return True

    def release(self) -> None:
        self.depth -= 1
        if not self.depth:
            self.owner = None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        return self.owner is (self.tasks.current or NOBODY)
