"""This host, as the tasks of a run see it: where they write layers, and where they find those of others.

Reading order: the host's own folder, which is also the cache of what was fetched; the host where the layer was written; the home. Whoever
finds a layer nowhere raises `Unavailable`: the run then makes it again (see `runtime.mending`).
"""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nosync.model.errors import Corrupt, Unavailable
from nosync.model.layers import LayerInfo
from nosync.model.places import HOME, Place, Sharing, to_ask
from nosync.peers.client import fetch
from nosync.peers.serving import SERVER, Order, address_towards, place_of_server, reaches
from nosync.peers.tidying import mark_spare
from nosync.state.layer import Layer
from nosync.state.private import make_folder

LOOK_SECONDS = 2.0
USED_SECONDS = 60.0  # between two marks that a layer is still of use


@dataclass
class LayerHost:
    """`root`: the folder of this host. `place` is asked with each layer that was written: a server that is gone is started again."""

    sharing: Sharing
    root: Path
    place: Callable[[], Place]

    def wrote(self, info: LayerInfo) -> LayerInfo:
        """The layer, with the place where others find it."""
        return replace(info, place=self.place())

    def open(self, info: LayerInfo, open: Callable[[Path, LayerInfo], Layer]) -> Layer:
        """The layer. One that is damaged here, or was deleted just now to make room, is fetched anew."""
        try:
            return open(self.having(info), info)
        except Corrupt:
            if self.place() == HOME:
                raise
            (self.root / info.path).unlink(missing_ok=True)
            return open(self.having(info), info)

    def having(self, info: LayerInfo) -> Path:
        """The folder, in which the layer is from here on."""
        if not self._is_here(info):
            self._fetch(info)
        return self.root

    def _is_here(self, info: LayerInfo) -> bool:
        try:
            facts = os.stat(self.root / info.path)
        except FileNotFoundError:
            return False
        if time.time() - facts.st_mtime > USED_SECONDS:
            with suppress(FileNotFoundError):
                os.utime(self.root / info.path)
        return facts.st_size == info.bytes

    def _fetch(self, info: LayerInfo) -> None:
        reasons = []
        for place in to_ask(info.place, self.place() or self.sharing.driver, self.sharing.driver):
            try:
                fetch(self.sharing, place, info, self.root)
                if self.place() != HOME:
                    mark_spare(self.root / info.path)
                return
            except Unavailable as error:
                reasons.append(error.message)
        raise Unavailable(f'layer "{info.path}" is nowhere to be had: {"; ".join(reasons)}', hint="It is computed again.")


class Worker:
    """The host of a Python worker. One for each run that it works for."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self._found: Place = HOME
        self._looked = 0.0
        base = Path(sharing.folder or os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir())
        self.root = (Path.cwd() / base / f"nosync-{sharing.run}").absolute()
        make_folder(self.root)

    def place(self) -> Place:
        """Of the server of this host, started if there is none any more."""
        now = time.monotonic()
        if not self._found or (now - self._looked > LOOK_SECONDS and not reaches(self._found)):
            address, sharing = address_towards(self.sharing.driver), self.sharing
            order = Order(
                str(self.root), address, address, os.getppid(), sharing.token, sharing.most_bytes, tls=sharing.tls,
                announced=str(self.root / SERVER),
            )  # fmt: skip
            self._found = place_of_server(order)
        self._looked = now
        return self._found


_WORKERS: dict[str, LayerHost] = {}


def worker_host(sharing: Sharing) -> LayerHost:
    """In a Python worker."""
    if sharing.run not in _WORKERS:
        _WORKERS.clear()  # a worker that goes on for another run
        worker = Worker(sharing)
        _WORKERS[sharing.run] = LayerHost(sharing, worker.root, worker.place)
    return _WORKERS[sharing.run]


def home_host(sharing: Sharing, home: Path) -> LayerHost:
    """In the driver: what is written there is in the home."""
    return LayerHost(sharing, home, lambda: HOME)
