"""A function in PySpark's own form, `fn(df, batch_id)`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nosync.model.absent import connector
from nosync.model.arguments import check_takes, checked
from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Invalid, Refused
from nosync.model.identifiers import Epoch
from nosync.model.quoting import quoted
from nosync.model.sink import Changes, Identity, Promise

BatchMode = Literal["update", "append"]


@checked(outputMode='Pass mode="update" or "append".')
def foreachBatch(  # noqa: N802 (PySpark's name)
    function: Callable[[DataFrame, int], Any], mode: BatchMode = "update", idempotent: bool = False
) -> "ForeachBatch":
    """Calls `function(df, epoch)` with the rows that each epoch adds or changes, as `DataStreamWriter.foreachBatch` does.

    `mode="update"`: of what changed, the new rows; what goes without a successor is not told (`ns.foreachEpoch` tells it, by `_diff`).
    `mode="append"`: refused where rows may be taken back. After a crash an epoch may come again, always the same: say `idempotent=True`
    if the function makes nothing of that, for example since it writes by the number of the epoch.

    >>> def save(df, epoch):
    ...     df.write.mode("overwrite").parquet(f"batches/{epoch}")
    >>> flow.sink("batches", purchases, ns.foreachBatch(save, idempotent=True))
    """
    if mode not in ("update", "append"):
        hint = 'Pass "update" or "append". The whole result of now is ns.parquet(path, mode="state"), or run.view(name).'
        raise Invalid(f'ns.foreachBatch: mode="{mode}" is not known', hint=hint)
    check_takes("the function of ns.foreachBatch", function, "df", "batch_id")
    return ForeachBatch(function, mode, idempotent)


@connector("sink", "foreachBatch")
@dataclass(frozen=True)
class ForeachBatch:
    """See `foreachBatch`."""

    function: Callable[[DataFrame, int], Any]
    mode: str
    idempotent: bool
    unchanged_epochs: ClassVar[bool] = True  # as PySpark calls it with empty batches

    def __repr__(self) -> str:
        return f'ns.foreachBatch({self.function!r}, mode="{self.mode}")'

    @property
    def promise(self) -> Promise:
        if self.idempotent:
            return Promise("precise", "the function makes nothing of an epoch that it had before (idempotent=True)")
        return Promise("repeating", "a crash between the call and its record calls the function again with the same epoch")

    def check_query(self, sink: str, schema: pa.Schema, corrects: Sequence[str]) -> None:
        if self.mode == "append" and corrects:
            raise Refused(
                f'sink "{sink}": mode="append" needs rows that are only ever added, but "{corrects[0]}" takes back what it gave',
                hint='Pass mode="update", or use ns.foreachEpoch, whose rows say by _diff what comes and what goes.',
            )

    def open(self, run: str, identity: Identity) -> None:
        """A function needs nothing."""

    def deliver(self, epoch: Epoch, changes: Changes) -> None:
        rows = changes.frame().where(F.col(DIFF) > 0)
        each = F.explode(F.array_repeat(F.lit(0), F.col(DIFF).cast("int"))).alias(DIFF)
        self.function(rows.select(*_but(rows, DIFF), each).drop(EPOCH, DIFF), epoch)

    def close(self) -> None:
        """Nothing is held."""


def _but(rows: DataFrame, name: str) -> list[str]:
    return [quoted(column) for column in rows.columns if column != name]
