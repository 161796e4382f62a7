"""A process beside the driver, for work that must not take a core from an epoch. Used for merging and for copying to the remote.

It lives as long as its standard input is open, so it ends with the driver however that ends.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress


def spawn(module: str, *arguments: str) -> "subprocess.Popen[str]":
    """Runs a module of this package with pipes to its input and output. Arguments go through the pipe: a command line is for all to see."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command, pipe = [sys.executable, "-m", module], subprocess.PIPE
    # In a process group of its own: a Ctrl-C is for the driver alone.
    process = subprocess.Popen(command, env=environment, process_group=0, stdin=pipe, stdout=pipe, text=True)
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once, which its user will see
        process.stdin.write(json.dumps(arguments) + "\n")
        process.stdin.flush()
    return process


def arguments() -> list[str]:
    """Called by the process first: what `spawn` was given."""
    found: list[str] = json.loads(sys.stdin.readline())
    return found


def close_pipes(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Of a process that has ended."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):  # something that it never read
                pipe.close()


def lower_priority(priority: int) -> None:
    """Called by the process once it is ready: from here on epochs come first. 19 is the lowest priority, 0 the usual one."""
    with suppress(OSError):
        os.nice(priority)
