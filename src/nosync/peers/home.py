"""The driver's own layer server, before the home: whoever cannot have a layer from where it was written asks here."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nosync.model.errors import Unavailable
from nosync.model.places import MOST_BYTES, Place, Sharing, Tls
from nosync.peers.client import tell
from nosync.peers.serving import SERVER, Order, place_of_server


class HomeServer:
    """Runs from when it is made until `close`, at the latest until this process ends. `address`: where executors reach the driver."""

    def __init__(
        self, run: str, home: Path, bind: str, address: str, folder: str = "", most_bytes: int = MOST_BYTES, tls: Tls | None = None
    ) -> None:
        token = secrets.token_hex(32)
        self._folder = Path(tempfile.mkdtemp(prefix="nosync-"))
        try:
            order = Order(
                str(home), bind, address, os.getpid(), token, most_bytes, at_home=True, tls=tls, announced=str(self._folder / SERVER)
            )
            self.sharing = Sharing(run, place_of_server(order), token, folder, most_bytes, tls)
        except BaseException:
            self.close()
            raise

    def close(self, places: Iterable[Place] = ()) -> None:
        """The servers at these places go, too, with what lies there."""
        for place in places:
            with suppress(Unavailable):  # it is gone, and what lies there with it
                tell(self.sharing, place, "end")
        shutil.rmtree(self._folder, ignore_errors=True)  # which ends the server
