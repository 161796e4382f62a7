"""Starting the layer server of a host, and finding the one that is there.

    FOLDER/nosync-<run>/server     {"process", "place"}: what listens; written by the server once it does
    FOLDER/nosync-<run>/starting   locked by who starts one
    FOLDER/nosync-<run>/layers/    as in a home

All tasks of a run on a host share one server. It ends with the executor that started it; the next task starts another, at the same port if
that is free: then layers that are here are found again where the journal says.
"""

import json
import os
import re
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nosync.model.errors import MALFORMED, Unavailable
from nosync.model.places import Place, Tls, address_of, is_place
from nosync.model.processes import is_running
from nosync.state.private import make_folder, open_private
from nosync.tiers.background import close_pipes, spawn

SERVER, STARTING = "server", "starting"
OWN_FOLDER = re.compile(r"nosync-[0-9]+\.[0-9a-f]+")
START_SECONDS = 60.0
LOOK_SECONDS = 0.02
REACH_SECONDS = 2.0
_OURS: "list[subprocess.Popen[str]]" = []  # which nobody waits for


@dataclass(frozen=True, slots=True)
class Order:
    """What a server is started with. It listens at `bind`, and others find it at `address`; `at_home`: its folder is the home."""

    root: str
    bind: str
    address: str
    owner: int
    token: str = field(repr=False)
    most_bytes: int
    at_home: bool = False
    port: int = 0
    tls: Tls | None = None
    announced: str = ""


def is_own_folder(root: Path) -> bool:
    """Whether a folder was made for the layers of one run on one host: nothing else is ever deleted."""
    return OWN_FOLDER.fullmatch(root.name) is not None


def place_of_server(order: Order) -> Place:
    """Where the server of this folder listens; started if there is none."""
    found = _listening(Path(order.announced))
    return found if found is not None else _started(order)


def _started(order: Order) -> Place:
    import fcntl  # which only POSIX has: where the home is shared there need not be one

    file = Path(order.announced)
    make_folder(file.parent)
    with open(file.with_name(STARTING), "a", opener=open_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (found := _listening(file)) is not None:  # somebody else has started it meanwhile
            return found
        before = _announced(file)
        port = address_of(before["place"])[1] if before else 0
        with suppress(FileNotFoundError):
            file.unlink()
        process = spawn("nosync.peers.server", json.dumps({**asdict(order), "port": port}))
        close_pipes(process)
        _OURS[:] = [one for one in _OURS if one.poll() is None] + [process]
        until = time.monotonic() + START_SECONDS
        while (found := _listening(file)) is None:
            if process.poll() is not None or time.monotonic() > until:
                raise Unavailable(f"no layer server could be started at {order.bind}", hint="The log of the executor says why.")
            time.sleep(LOOK_SECONDS)
        return found


def _announced(file: Path) -> dict[str, Any] | None:
    """Nothing where the file is not there, or says something else."""
    try:
        facts = json.loads(file.read_text())
        known = {"process": int(facts["process"]), "place": facts["place"]}
    except (OSError, *MALFORMED):
        return None
    return known if is_place(known["place"]) else None


def _listening(file: Path) -> Place | None:
    """The place of the server that wrote the file, if it is there still."""
    facts = _announced(file)
    return facts["place"] if facts is not None and is_running(facts["process"]) else None


def announce(order: Order, port: int) -> None:
    """Called by the server once it listens."""
    beginning = f"{order.announced}.{os.getpid()}"
    with open(beginning, "w", opener=open_private) as file:
        file.write(json.dumps({"process": os.getpid(), "place": f"{order.address}:{port}"}))
    os.replace(beginning, order.announced)


def address_towards(place: Place) -> str:
    """The address of this host in the network in which the place is. Nothing is sent."""
    given = os.environ.get("SPARK_LOCAL_IP", "")
    if given and given != "0.0.0.0":
        return given
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(address_of(place))
        return str(probe.getsockname()[0])


def reaches(place: Place) -> bool:
    """Whether somebody listens there: known soon, also where the host is gone."""
    try:
        socket.create_connection(address_of(place), REACH_SECONDS).close()
    except (OSError, OverflowError):  # there is no such port
        return False
    return True
