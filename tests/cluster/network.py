"""Hosts in network namespaces, joined by a switch in one of its own, whose ports can be cut. As root.

Nothing of it has a name outside: each namespace lives as long as a process that holds it, and those end with the test, however that ends.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Self

from tests.crash.processes import started

HOLDER = "ip link set lo up && echo ready && exec cat"
END_SECONDS = 30


class Holder:
    """A network namespace, while its process lives."""

    def __init__(self) -> None:
        command = [shutil.which("unshare") or "false", "--net", "sh", "-c", HOLDER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._process.stdout is not None and self._process.stderr is not None
        ready = self._process.stdout.readline() == b"ready\n"
        self.problem = "" if ready else self._process.stderr.read().decode().strip() or "no namespace"

    @property
    def number(self) -> int:
        return self._process.pid

    def inside(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", f"--target={self.number}", "--net", "--", *command]

    def do(self, *command: str) -> None:
        subprocess.run(self.inside(command), check=True, capture_output=True, text=True)

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._process.wait(END_SECONDS)


class Node:
    """A host: an address in the network of the switch, and a port there."""

    def __init__(self, switch: Holder, number: int) -> None:
        self._switch, self._holder = switch, Holder()
        self.address, self._port = f"198.51.100.{number}", f"port{number}"
        switch.do("ip", "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", str(self._holder.number))
        switch.do("ip", "link", "set", self._port, "master", "switch", "up")
        self._holder.do("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self._holder.do("ip", "link", "set", "eth0", "up")

    def start(self, command: Sequence[str], folder: Path, log: Path, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """A process group on this host."""
        return started(self.inside(command), folder, log, settings | {"SPARK_LOCAL_IP": self.address})

    def plug(self, plugged: bool) -> None:
        """Its cable in the switch."""
        self._switch.do("ip", "link", "set", self._port, "up" if plugged else "down")

    def inside(self, command: Sequence[str]) -> list[str]:
        """The same command, to be run on this host."""
        return self._holder.inside(command)

    def close(self) -> None:
        self._holder.close()


class Network:
    """The switch and its hosts. Leaving it as a context manager leaves nothing behind."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._switch = Holder()
        self._stack.callback(self._switch.close)
        self._switch.do("ip", "link", "add", "switch", "type", "bridge")
        self._switch.do("ip", "link", "set", "switch", "up")
        return self

    def node(self, number: int) -> Node:
        node = Node(self._switch, number)
        self._stack.callback(node.close)
        return node

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@cache
def impossible() -> str:
    """Why there can be no such network here; empty where there can."""
    lacking = [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]
    if lacking:
        return f"{lacking[0]} is not installed"
    holder = Holder()
    try:
        if not holder.problem:
            holder.do("ip", "link", "add", "probe", "type", "bridge")
        return holder.problem
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip()
    finally:
        holder.close()
