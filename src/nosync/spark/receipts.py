"""Receipts: what a task reports to the driver about the layer it wrote.

They ride on a Spark accumulator, beside the data. A retried or speculative task may hand in a second one: equal checksums are the
same work done twice, different ones mean that the query is not deterministic.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam

from nosync.model.errors import Failed
from nosync.model.hash_range import ALL_HASHES, HashRange
from nosync.model.identifiers import Epoch, Shard, TraceName
from nosync.model.layers import LayerInfo
from nosync.state.search import BloomUse


@dataclass(frozen=True, slots=True)
class Receipt:
    """One kernel run: rows that came in, the layer (none where nothing changed), milliseconds, and what Bloom filters did. `range`: what
    the layer is about, the shard or a part of it.
    """

    trace: TraceName
    shard: Shard
    epoch: Epoch
    rows: int
    layer: LayerInfo | None
    millis: float = 0.0
    bloom: BloomUse | None = None
    range: HashRange | None = None


class _Concatenation(AccumulatorParam[list[Receipt]]):
    def zero(self, value: list[Receipt]) -> list[Receipt]:
        return []

    def addInPlace(self, left: list[Receipt], right: list[Receipt]) -> list[Receipt]:  # noqa: N802 (PySpark's name)
        left.extend(right)
        return left


def collector(context: SparkContext) -> "Accumulator[list[Receipt]]":
    """Where the tasks of one epoch hand in their receipts."""
    return context.accumulator([], _Concatenation())


def agreed(receipts: Iterable[Receipt]) -> list[Receipt]:
    """One receipt per trace and shard (and part of it), in a stable order."""
    chosen: dict[tuple[TraceName, Shard, HashRange], Receipt] = {}
    for receipt in receipts:
        part = (receipt.trace, receipt.shard, receipt.range or ALL_HASHES)
        known = chosen.setdefault(part, receipt)
        if _checksum(known) != _checksum(receipt):
            raise Failed(
                f'trace "{receipt.trace}", shard {receipt.shard}: two attempts at epoch {receipt.epoch} gave different results',
                hint="A function or source of this flow is not deterministic: the same input must give the same rows.",
            )
    return [chosen[part] for part in sorted(chosen)]


def _checksum(receipt: Receipt) -> str:
    return receipt.layer.checksum if receipt.layer else ""
