"""How many shards a flow should have. Pure: a load in, a number out.

A shard is what one task works on, so more of them help where there are cores for them and enough to do for each; every one costs each epoch
a file and a task. `Fixed` leaves the number as it is. `Follow` goes by rows (a task each for so many) and by state (a shard holds so many
bytes at most, so that merging it stays short): quickly up, late down, and never by less than a factor of two, so that it comes to rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

ROWS_A_SHARD = 50_000
BYTES_A_SHARD = 512 << 20
SHARDS_A_CORE = 4
WINDOW = 32  # epochs: as many are looked at, and pass before the next change


@dataclass(frozen=True, slots=True)
class Load:
    """What a flow has to do: `rows` of its last epochs, the bytes of its newest state, and the cores to do it on."""

    cores: int
    rows: Sequence[int]
    bytes: int


class Scaling(Protocol):
    """A rule. A pure value."""

    def shards(self, now: int, load: Load) -> int:
        """How many there shall be, where there are so many now."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """As many as somebody asked for."""

    def shards(self, now: int, load: Load) -> int:
        return now


@dataclass(frozen=True, slots=True)
class Follow:
    """As many as cores and load ask for."""

    def shards(self, now: int, load: Load) -> int:
        if len(load.rows) < WINDOW:
            return now
        wanted = wanted_shards(load)
        return wanted if wanted >= 2 * now or 2 * wanted <= now else now


def wanted_shards(load: Load) -> int:
    """By rows no more than one per core: others would wait. By bytes some more, since merging is not done by all at once."""
    by_rows = min(-(-int(median(load.rows)) // ROWS_A_SHARD), load.cores)
    by_bytes = min(-(-load.bytes // BYTES_A_SHARD), SHARDS_A_CORE * load.cores)
    return max(1, by_rows, by_bytes)


FIXED, FOLLOW = Fixed(), Follow()
