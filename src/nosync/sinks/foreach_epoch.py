"""A function of the user's, called with each epoch's changes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import DataFrame

from nosync.model.absent import connector
from nosync.model.arguments import check_takes, checked
from nosync.model.identifiers import Epoch
from nosync.model.sink import Changes, Identity, Promise


@checked()
def foreachEpoch(function: Callable[[DataFrame, int], Any], idempotent: bool = False) -> "ForeachEpoch":  # noqa: N802 (as PySpark's foreachBatch)
    """Calls the function with each epoch's changes and its number.

    The changes are a DataFrame of the query's columns, `_epoch` and `_diff`. After a crash an epoch may come again, always the same:
    say `idempotent=True` if the function makes nothing of that.

    >>> flow.sink("each", purchases, ns.foreachEpoch(lambda df, epoch: df.count()))
    """
    check_takes("the function of ns.foreachEpoch", function, "df", "epoch")
    return ForeachEpoch(function, idempotent)


@connector("sink", "foreachEpoch")
@dataclass(frozen=True)
class ForeachEpoch:
    """See `foreachEpoch`."""

    function: Callable[[DataFrame, int], Any]
    idempotent: bool
    every_epoch: ClassVar[bool] = True
    unchanged_epochs: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"ns.foreachEpoch({self.function!r}{', idempotent=True' if self.idempotent else ''})"

    @property
    def promise(self) -> Promise:
        if self.idempotent:
            return Promise("precise", "the function makes nothing of an epoch that it had before (idempotent=True)")
        return Promise("repeating", "a crash between the call and its record calls the function again with the same epoch")

    def open(self, run: str, identity: Identity) -> None:
        """A function needs nothing."""

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        self.function(changes.frame(), epoch)

    def close(self) -> None:
        """Nothing is held."""
