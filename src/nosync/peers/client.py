"""Asking the layer servers of other hosts.

Promise: a layer that came is whole and is the one that was asked for: it is verified before it gets its name. Whatever goes wrong, a host
that is gone or bytes that are not right, is `Unanswered`: it is asked for elsewhere. Flight is loaded with the first question: where the
home is shared nobody asks one.
"""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from nosync.model.errors import Corrupt, Unavailable
from nosync.model.layers import LayerInfo
from nosync.model.places import Place, Sharing
from nosync.peers.serving import reaches
from nosync.state.layer import open_layer, verify
from nosync.store.disk import failing_as, whole_file

LEAST_SECONDS = 10.0
LEAST_PACE = 4 << 20  # bytes a second: what comes more slowly is asked for elsewhere
OPTIONS = [("grpc.enable_http_proxy", 0)]


class Unanswered(Unavailable):
    """A place did not give what it was asked for; others may. That this host cannot write is something else."""


class Clients:
    """Connections to the servers of a run, kept from one question to the next. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[Place, str], Any] = {}

    def to(self, sharing: Sharing, place: Place) -> Any:
        key = place, sharing.token
        with self._lock:
            if key in self._known:
                return self._known[key]
        if not reaches(place):
            raise Unanswered(f"nobody answers at {place}", hint="What lies there is had from elsewhere, or computed again.")
        from pyarrow import flight

        if sharing.tls is None:
            client = flight.FlightClient(f"grpc+tcp://{place}", generic_options=OPTIONS)
        else:
            roots = Path(sharing.tls.authority).read_bytes()
            client = flight.FlightClient(f"grpc+tls://{place}", tls_root_certs=roots, generic_options=OPTIONS)
        with self._lock:
            return self._known.setdefault(key, client)

    def forget(self, sharing: Sharing, place: Place) -> None:
        with self._lock:
            client = self._known.pop((place, sharing.token), None)
        if client is not None:
            with suppress(pa.ArrowException, OSError):
                client.close()


CLIENTS = Clients()


def fetch(sharing: Sharing, place: Place, info: LayerInfo, root: Path) -> None:
    """Brings a layer from a place into a folder, under its name."""

    def copied() -> None:
        from pyarrow import flight

        ticket = flight.Ticket(json.dumps({"path": info.path}).encode())
        client = CLIENTS.to(sharing, place)
        reader = client.do_get(ticket, _options(sharing, info.bytes))
        with failing_as(f'"{info.path}" was not written'), whole_file(root / info.path, place=partial(_named, root, info)) as file:
            left = info.bytes
            for piece in (value.as_buffer() for chunk in reader for value in chunk.data.column(0)):
                left -= len(piece)
                if left < 0:
                    raise Corrupt(f'"{info.path}" is longer than it was')
                file.write(piece)

    _asked(sharing, place, f'layer "{info.path}" did not come', copied)


def _named(root: Path, info: LayerInfo, beginning: str, path: Path) -> None:
    verify(open_layer(root, replace(info, path=os.path.relpath(beginning, root))))
    os.replace(beginning, path)


def tell(sharing: Sharing, place: Place, action: str, body: Any = None) -> None:
    """One of the actions of a server."""

    def told() -> None:
        from pyarrow import flight

        client = CLIENTS.to(sharing, place)
        list(client.do_action(flight.Action(action, json.dumps(body).encode()), _options(sharing, 0)))

    _asked(sharing, place, f'"{action}" was not said', told)


def _options(sharing: Sharing, bytes: int) -> Any:
    from pyarrow import flight

    token = (b"authorization", f"Bearer {sharing.token}".encode())
    return flight.FlightCallOptions(timeout=LEAST_SECONDS + bytes / LEAST_PACE, headers=[token])


def _asked(sharing: Sharing, place: Place, what: str, act: Callable[[], None]) -> None:
    from pyarrow import flight

    try:
        act()
    except (flight.FlightError, pa.ArrowException, Corrupt) as error:
        CLIENTS.forget(sharing, place)
        words = str(error).splitlines()[0].partition(". Detail:")[0]
        raise Unanswered(f"{what} from {place}: {words}") from error
