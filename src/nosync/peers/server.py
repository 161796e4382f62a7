"""The layer server of a host: a process that gives layers, as bytes, to tasks of the same run on other hosts.

    do_get {"path": "layers/..."}        the bytes of a layer, in pieces
    do_action "kept" ["layers/...", ...]  the home has these: they may go from here when room is needed
    do_action "receipt" {"folder", "facts"}  at the driver's alone: a receipt to be left in the home (see `spark.receipts`)
    do_action "end"                      the run is over: what lies here goes, and so does the server; never the home

It speaks to bearers of the run's token only, gives nothing but layers below its folder, and ends with the process that it was started
for (`owner`). How it is started and found again: `serving`.
"""

import hmac
import json
import os
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from nosync.journal.names import LAYER, LAYERS, LEFT_RECEIPTS, RECEIPTS
from nosync.model.errors import MALFORMED
from nosync.model.places import Tls
from nosync.model.processes import is_running
from nosync.peers.serving import Order, announce, is_own_folder
from nosync.peers.tidying import lying, mark_spare, to_delete
from nosync.state.private import make_folder, open_private
from nosync.tiers.background import arguments

PIECE = 1 << 20
MOST_TRANSFERS = 64
MOST_TICKET, MOST_BODY = 4 << 10, 4 << 20
ROUNDABOUT = {".", ".."}
SCHEMA = pa.schema([pa.field("bytes", pa.binary())])
WATCH_SECONDS = 0.5
TIDY_SECONDS = 30.0


class Door(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets in whoever has the token. How long the comparison takes says nothing of it."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Any) -> None:
        given = next(iter(headers.get("authorization", ())), "")
        if not hmac.compare_digest(given.encode() if isinstance(given, str) else given, self._expected):
            raise flight.FlightUnauthenticatedError("this is not the token of the run")


class LayerServer(flight.FlightServerBase):  # type: ignore[misc]
    """See the module."""

    def __init__(self, order: Order, port: int) -> None:
        tls = order.tls
        secured = {"tls_certificates": [(Path(tls.certificate).read_bytes(), Path(tls.key).read_bytes())]} if tls else {}
        scheme = "grpc+tls" if tls else "grpc+tcp"
        super().__init__(f"{scheme}://{order.bind}:{port}", middleware={"door": Door(order.token)}, **secured)
        self.root, self.at_home = Path(order.root), order.at_home
        self.ending = threading.Event()
        self._transfers = threading.BoundedSemaphore(MOST_TRANSFERS)

    def do_get(self, context: Any, ticket: Any) -> Any:
        file = self.root / _layer_named(ticket.ticket)
        try:
            content = pa.memory_map(str(file)).read_buffer()
            if not self.at_home:
                os.utime(file)  # it was asked for
        except OSError:
            raise flight.FlightServerError("it is not here") from None
        return flight.GeneratorStream(SCHEMA, self._pieces(content))

    def _pieces(self, content: pa.Buffer) -> Iterator[pa.RecordBatch]:
        """Counts from the first piece on: who asks and goes away before that holds up nobody."""
        if not self._transfers.acquire(blocking=False):
            raise flight.FlightUnavailableError(f"{MOST_TRANSFERS} transfers are under way")
        try:
            for start in range(0, content.size, PIECE):
                piece = content.slice(start, min(PIECE, content.size - start))
                offsets = pa.py_buffer(start_and_end(piece.size))
                array = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, piece])
                yield pa.RecordBatch.from_arrays([array], schema=SCHEMA)
        finally:
            self._transfers.release()

    def do_action(self, context: Any, action: Any) -> Iterator[flight.Result]:
        body = action.body.to_pybytes() if action.body is not None else b""
        if len(body) > MOST_BODY:
            raise flight.FlightServerError(f"{len(body):,} bytes are too many")
        match action.type:
            case "kept" if not self.at_home:
                for name in _names(body):
                    with suppress(FileNotFoundError):
                        mark_spare(self.root / name)
            case "receipt" if self.at_home:
                self._leave(body)
            case "end" if not self.at_home:
                self.ending.set()
            case other:
                raise flight.FlightServerError(f"there is no {other!r} here")
        return iter(())

    def _leave(self, body: bytes) -> None:
        try:
            given = json.loads(body)
            folder, facts = given["folder"], json.dumps(given["facts"])
        except MALFORMED:
            folder, facts = "", ""
        if not isinstance(folder, str) or LEFT_RECEIPTS.fullmatch(folder) is None:
            raise flight.FlightServerError("this is no receipt")
        make_folder(self.root / RECEIPTS / folder)
        with open(self.root / RECEIPTS / folder / uuid.uuid4().hex, "x", opener=open_private) as file:
            file.write(facts)

    def tidy(self, most_bytes: int) -> None:
        """Makes room: what lies elsewhere too goes, what was used least lately first."""
        found = []
        for folder, _, files in os.walk(self.root / LAYERS):
            for name in files:
                with suppress(FileNotFoundError):
                    found.append(lying(f"{folder}/{name}", os.path.relpath(f"{folder}/{name}", self.root)))
        for gone in to_delete(found, most_bytes, time.time()):
            with suppress(FileNotFoundError):
                os.unlink(self.root / gone)


def start_and_end(size: int) -> bytes:
    """The offsets of a binary array of one value."""
    return (0).to_bytes(4, sys.byteorder) + size.to_bytes(4, sys.byteorder)


def _layer_named(ticket: bytes) -> str:
    try:
        name = json.loads(ticket)["path"] if len(ticket) <= MOST_TICKET else ""
    except MALFORMED:
        name = ""
    return _checked(name)


def _checked(name: object) -> str:
    """Nothing but layers, and none that leads out of the folder."""
    if not isinstance(name, str) or LAYER.fullmatch(name) is None or "\0" in name or ROUNDABOUT & {*name.split("/")}:
        raise flight.FlightServerError("this is no name of a layer")
    return name


def _names(body: bytes) -> list[str]:
    try:
        names = list(json.loads(body))
    except MALFORMED:
        raise flight.FlightServerError("these are no names") from None
    return [_checked(name) for name in names]


def serve(order: Order) -> None:
    """Until the owner is gone, or the run has ended."""
    try:
        server = LayerServer(order, order.port)
    except (pa.ArrowException, OSError):  # somebody else has the port by now
        server = LayerServer(order, 0)
    announce(order, server.port)
    tidied = time.monotonic()
    while is_running(order.owner) and not server.ending.wait(WATCH_SECONDS):
        if not order.at_home and time.monotonic() - tidied > TIDY_SECONDS:
            server.tidy(order.most_bytes)
            tidied = time.monotonic()
    server.shutdown()
    if server.ending.is_set() and is_own_folder(Path(order.root)):
        shutil.rmtree(order.root, ignore_errors=True)


def main() -> None:
    facts: dict[str, Any] = json.loads(arguments()[0])
    tls = facts.pop("tls")
    serve(Order(**facts, tls=Tls(**tls) if tls else None))


if __name__ == "__main__":
    main()
