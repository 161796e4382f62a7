"""What things are known by. Distinct types, so that none can be passed for another; at run time they are plain ints and strings."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NewType, Self

if TYPE_CHECKING:

    class _Counted(int):
        def __add__(self, other: int, /) -> Self: ...
        def __sub__(self, other: int, /) -> Self: ...

    class Epoch(_Counted):
        """A step of a flow, counted from 1. 0 is before the first."""

    class RecordNumber(_Counted):
        """A record of a journal, counted from 1. 0 is before the first."""

else:
    Epoch = RecordNumber = int

NO_EPOCH, NO_RECORD = Epoch(0), RecordNumber(0)

Shard = NewType("Shard", int)
"""A task's part of the hash space, counted from 0 (see `shards`). What lies on disk is known by its range of hashes instead."""

TraceName = NewType("TraceName", str)
"""The name under which an operator or a view keeps state: unique in a home, never used again for anything else."""


def epochs(first: int, last: int) -> Iterable[Epoch]:
    """From the first to the last, both included."""
    return map(Epoch, range(first, last + 1))
