"""Shards: the hash space cut into contiguous ranges of about the same size.

Shard p of n holds the hashes whose upper 31 bits v satisfy v * n >> 31 == p. Spark computes the same with `shard_expression`.
"""

from collections.abc import Iterable
from functools import lru_cache

from nosync.model.columns import HASH
from nosync.model.hash_range import ALL_HASHES, HashRange
from nosync.model.identifiers import Shard

POSSIBLE_SHARDS = range(1, 1 << 16)


def shard_expression(shards: int) -> str:
    """The shard of the column `_hash`, in Spark SQL."""
    return f"cast(shiftright(shiftrightunsigned({HASH}, 33) * {shards}L, 31) as int)"


def lower_bounds(shards: int) -> list[int]:
    """The smallest unsigned hash of each shard, ascending."""
    return [-(-(p << 31) // shards) << 33 for p in range(shards)]


def shard_of(hash: int, shards: int) -> Shard:
    """The shard of an unsigned hash."""
    return Shard((hash >> 33) * shards >> 31)


@lru_cache
def shard_ranges(shards: int) -> tuple[HashRange, ...]:
    """What each shard holds, in their order."""
    bounds = [*lower_bounds(shards), ALL_HASHES.upper]
    return tuple(map(HashRange, bounds, bounds[1:]))


def shards_in(ranges: Iterable[HashRange], shards: int) -> list[Shard]:
    """The shards that hold some of these hashes, in order."""
    wanted = list(ranges)
    return [Shard(p) for p, held in enumerate(shard_ranges(shards)) if any(held.overlaps(one) for one in wanted)]
