"""Shards: contiguous ranges of the 64-bit key-hash space.

Shard p of n holds the hashes whose upper 31 bits v satisfy v * n >> 31 == p. Spark computes the same with `shard_expression`.
Ranges of another count are slices of these, so rescaling copies nothing.
"""

from nosync.model.identifiers import Shard


def shard_expression(shards: int) -> str:
    """The shard of the column `_hash`, in Spark SQL."""
    return f"cast(shiftright(shiftrightunsigned(_hash, 33) * {shards}L, 31) as int)"


def lower_bounds(shards: int) -> list[int]:
    """The smallest unsigned hash of each shard, ascending."""
    return [-(-(p << 31) // shards) << 33 for p in range(shards)]


def shard_of(hash: int, shards: int) -> Shard:
    """The shard of an unsigned hash."""
    return Shard((hash >> 33) * shards >> 31)
