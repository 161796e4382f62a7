"""Which lines of the core a test runs. Called in a forked process, around one test at a time."""

import signal
import sys
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

Lines = set[tuple[str, int]]


class Slow(BaseException):
    """A test takes longer than it may."""


@contextmanager
def at_most(cpu_seconds: float) -> Iterator[None]:
    """`Slow` comes up wherever the test is."""

    def stop(*_: Any) -> None:
        raise Slow

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class Tracer:
    """Sees the lines that are run in some files. A function all of whose lines were seen is not looked at again."""

    def __init__(self, files: Container[str]) -> None:
        self.files = files
        self.lines: Lines = set()
        self._left: dict[CodeType, set[int] | None] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code not in self._left:
            ours = code.co_filename in self.files
            self._left[code] = {line for *_, line in code.co_lines() if line is not None} if ours else None
        return self._stepped if self._left[code] else None

    def _stepped(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        self.lines.add((code.co_filename, frame.f_lineno))
        left = self._left[code]
        if left:
            left.discard(frame.f_lineno)
        else:
            frame.f_trace_lines = False
        return self._stepped
