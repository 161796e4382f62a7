"""Copies layers to the remote in a process of its own, at a low priority.

Reading, compressing and sending a layer takes CPU that busy cores do not have to spare. In a process (and not in a thread of the driver,
which would hold Python's lock while it waits for a core) it gets what epochs leave, and a twentieth of two cores that are never idle: a
safe point must not stand still for good.

Promise: `upload` ends as that of the remote does, with the same errors. A process that was killed is replaced by the next upload.
"""

import json
import subprocess
import threading
from typing import Any

from nosync.model import errors
from nosync.model.errors import NosyncError, OutcomeUnknown, Unavailable
from nosync.model.store import Disk, Uploader
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects
from nosync.tiers.background import close_pipes, spawn

PRIORITY = 10


class UploadProcess:
    """Carries files of one home to one remote, one at a time. Its process starts with the first."""

    def __init__(self, url: str, home: str) -> None:
        self._arguments = (url, home)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def upload(self, name: str, disk: Disk) -> int:
        """As `Remote.upload`, of the home that the process was made for."""
        with self._lock:
            answer = self._ask(name)
        if "error" in answer:
            raise error_of(answer)
        return int(answer["bytes"])

    def _ask(self, name: str) -> dict[str, Any]:
        if self._process is not None and self._process.poll() is not None:
            self._end_process()
        if self._closed:
            raise Unavailable(f'"{name}" was not copied: the run has ended', hint="The next run copies it.")
        if self._process is None:
            self._process = spawn("nosync.tiers.upload_worker", *self._arguments)
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(name) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._end_process()
            raise OutcomeUnknown(f'the process that copied "{name}" ended', hint="It is started again by itself, and the file copied anew.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """A copy under way is given up: objects are there whole or not at all. None is begun from here on: nobody would end its process."""
        self._closed = True
        if self._process is not None:
            self._process.terminate()
        with self._lock:
            self._end_process()

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            close_pipes(process)


def upload_process(remote: object, disk: Disk) -> UploadProcess | None:
    """An upload process where the remote can be reached from another process."""
    if isinstance(remote, Objects) and isinstance(disk, LocalDisk) and not remote.url.startswith("memory:"):
        return UploadProcess(remote.url, str(disk.root))
    return None


def answer(uploader: Uploader, name: str, disk: Disk) -> dict[str, Any]:
    """What the process says of one file."""
    try:
        return {"bytes": uploader.upload(name, disk)}
    except NosyncError as error:
        return {"error": type(error).__name__, "message": error.message, "hint": error.hint}


def error_of(answer: dict[str, Any]) -> NosyncError:
    """The error that the process met."""
    kind: type[NosyncError] = getattr(errors, answer["error"])
    return kind(answer["message"], answer["hint"])
