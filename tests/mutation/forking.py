"""Acts in a copy of this process: what an act changes, breaks or leaves behind goes with the copy.

Promise: an act that hangs, devours memory or kills its process is answered like any other.
"""

import gc
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MEMORY_BYTES = 3 << 30
STILL_SECONDS = 20.0  # without any use of the processor: it waits for something that never comes
OUT_OF_TIME = "out of time"
DIED = "died"
FAILED = "failed: "


def in_a_copy(act: Callable[[], str], wall_seconds: float) -> str:
    """What the act says. `OUT_OF_TIME` or `DIED` when it comes to say nothing; `RuntimeError` when it raises."""
    reading, writing = os.pipe()
    copy = os.fork()
    if not copy:
        _be_the_copy(act, writing)
    os.close(writing)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(copy, copy)
    try:
        said = _heard(reading, copy, wall_seconds)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(copy, signal.SIGKILL)  # with all that it started
        _, status = os.waitpid(copy, 0)
    if said.startswith(FAILED):
        raise RuntimeError(said)
    if said:
        return said
    return OUT_OF_TIME if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGKILL) else DIED


def _heard(reading: int, copy: int, wall_seconds: float) -> str:
    """Until the copy has said all, has had its time, or stands still."""
    said, started = b"", time.monotonic()
    spent, moved = -1, started
    while (now := time.monotonic()) - started < wall_seconds and now - moved < STILL_SECONDS:
        if select.select([reading], [], [], 0.5)[0]:
            part = os.read(reading, 1 << 20)
            if not part:
                break
            said += part
        if (time_driven := _ticks(copy)) != spent:
            spent, moved = time_driven, now
    return said.decode()


def _ticks(process: int) -> int:
    """Of the processor, that it and all processes that it has started have had."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        threads = Path(f"/proc/{process}/task").glob("*/children")
        children = [int(child) for thread in threads for child in thread.read_text().split()]
    except OSError:  # gone meanwhile
        return 0
    return sum(map(int, fields[11:15])) + sum(map(_ticks, children))


def _be_the_copy(act: Callable[[], str], writing: int) -> None:
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES, resource.RLIM_INFINITY))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        try:
            said = act().encode()
        except Exception as error:
            said = f"{FAILED}{error!r}".encode()
        while said:
            said = said[os.write(writing, said) :]
    finally:
        os._exit(0)


def end_after(cpu_seconds: float) -> None:
    """Called by an act: it is out of time when it has used the processor for so long from now on."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)


def freeze_memory() -> None:
    """What exists by now is shared with all copies: none of them shall look through it for garbage."""
    gc.collect()
    gc.freeze()
