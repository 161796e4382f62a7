"""What a host deletes of the layers that lie on its disk. The choice is pure.

Layers that came from elsewhere, and its own once the home has them, are there to save a fetch, and may only be read: the most recently
used ones stay. A layer that the home has not asked for in an hour is one that no record names: of an attempt that did not count.
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

UNNAMED_SECONDS = 3600.0
SPARE = 0o400
SHARE_LEFT = 0.8  # once there is too much: so that not every look finds some


@dataclass(frozen=True, slots=True)
class Lying:
    """A file below the folder of a host. `used_at`: when it was written, fetched or last used; `spare`: somebody else has it too."""

    path: str
    bytes: int
    used_at: float
    spare: bool


def mark_spare(file: str | os.PathLike[str]) -> None:
    """Somebody else has it too. The mark lasts as long as the file."""
    os.chmod(file, SPARE)


def lying(file: str, path: str) -> Lying:
    facts = os.stat(file)
    return Lying(path, facts.st_size, facts.st_mtime, stat.S_IMODE(facts.st_mode) == SPARE)


def to_delete(lying: Iterable[Lying], most_bytes: int, now: float) -> list[str]:
    """Those to go, so that what is left takes less than `most_bytes`. Layers that only this host may have stay, however many they are."""
    known = list(lying)
    total = sum(one.bytes for one in known)
    if total <= most_bytes:
        return []
    gone = []
    for one in sorted(known, key=lambda one: (not one.spare, one.used_at)):
        if total <= SHARE_LEFT * most_bytes:
            break
        if one.spare or now - one.used_at > UNNAMED_SECONDS:
            gone.append(one.path)
            total -= one.bytes
    return gone
