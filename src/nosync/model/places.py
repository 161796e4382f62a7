"""Where layers lie while executors do not see the home.

A *place* is the address of a layer server, "host:port": the host on which a task wrote a layer. The empty place is the home. Pure values.
"""

import re
from dataclasses import dataclass, field

PLACE = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,252}:[0-9]{1,5}")
MOST_BYTES = 10 << 30

Place = str
HOME = ""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of the user's, under the same paths on every host: a server's certificate and key, and who has signed those of the others."""

    certificate: str
    key: str
    authority: str


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the tasks of a run must know to hand each other layers. `driver` is the place of the layer server before the home, `token` what
    every server of this run asks for. `folder`: where layers are to lie, the executor's own folder where it is empty; `most_bytes` is
    what a host keeps of those that are elsewhere too.
    """

    run: str
    driver: Place
    token: str = field(repr=False)
    folder: str = ""
    most_bytes: int = MOST_BYTES
    tls: Tls | None = None


def is_place(text: object) -> bool:
    return isinstance(text, str) and PLACE.fullmatch(text) is not None


def address_of(place: Place) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host, int(port)


def to_ask(written: Place, here: Place, driver: Place) -> tuple[Place, ...]:
    """Who may have a layer that is not here, in the order in which to ask: where it was written, then the home."""
    return tuple(place for place in dict.fromkeys((written, driver)) if place not in (HOME, here))
