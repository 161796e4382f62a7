"""A host of its own on this machine: a network in which nothing but loopback is, and a small disk. As root, in namespaces.

Where namespaces are not allowed, the host shares the machine's loopback, and a full disk is a limit on what Spark's Python workers may
write into one file. `isolated` says which it is.
"""

import ctypes
import os
import resource
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tests.crash.processes import WORDS, command_of

LOOPBACK = "127.0.0.1"
DISK = "48m"
CLONE_NEWNET = 0x40000000
BALLAST = "ballast"
TINY = 1  # bytes that a file may have where no disk can be filled

# Lives until its standard input is closed: the namespaces, and the disk with them, end with the test, however that ends.
HOLDER = 'ip link set lo up && mount -t tmpfs -o size="$2" tmpfs "$1" && echo ready && exec cat'


class Place:
    """Where one host is. `folder` is its disk as its own processes see it, `seen` the same from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        unshare = [shutil.which("unshare") or "false", "--net", "--mount", "--propagation", "private"]
        command = [*unshare, "sh", "-c", HOLDER, "holder", str(folder), DISK]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._holder.stdout is not None
        self.isolated = self._holder.stdout.readline() == b"ready\n"
        self.seen = Path(f"/proc/{self._holder.pid}/root{folder.absolute()}") if self.isolated else folder

    def command(self, command: Sequence[str]) -> list[str]:
        """The same command, to be started on this host."""
        inside = ["nsenter", f"--target={self._holder.pid}", "--net", "--mount", "--"] if self.isolated else []
        return [*inside, *command]

    def listening(self) -> socket.socket:
        """A socket that listens on the host's loopback, for this process to answer."""
        if not self.isolated:
            return _listening()
        found: list[socket.socket] = []
        thread = threading.Thread(target=lambda: found.append(_listening(self._holder.pid)))
        thread.start()  # a thread can be in another network than its process
        thread.join()
        return found[0]

    def fill(self, processes: Sequence[psutil.Process]) -> None:
        """Takes all the room that is left."""
        if not self.isolated:
            return limit(processes, TINY)
        with (self.seen / BALLAST).open("ab", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while ballast.write(b"x" * size):
                        pass

    def free(self, processes: Sequence[psutil.Process]) -> None:
        """Gives it back."""
        if not self.isolated:
            return limit(processes, resource.RLIM_INFINITY)
        (self.seen / BALLAST).unlink(missing_ok=True)

    def close(self) -> None:
        assert self._holder.stdin is not None and self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.stdout.close()
        self._holder.wait(30)


def limit(processes: Sequence[psutil.Process], most: int) -> None:
    """What each Python worker may write into one file: layers, that is. Forks inherit it."""
    for process in processes:
        if WORDS["worker"] in command_of(process):
            with suppress(psutil.Error):  # one that has just ended
                process.rlimit(psutil.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def _listening(process: int | None = None) -> socket.socket:
    """In the network of a process, if one is given; the calling thread stays there."""
    if process is not None:
        descriptor = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(descriptor)
    return socket.create_server((LOOPBACK, 0), backlog=128)
