"""Receipts: what a task reports to the driver about the layer it wrote.

They ride on a Spark accumulator, beside the data. A retried or speculative task may hand in a second one: equal checksums are the
same work done twice, different ones mean that the query is not deterministic.

Spark drops what a task has added that fails later on. Where the change that a kernel makes is kept for several readers, that task may have
left it whole in Spark's cache: the next attempt reads it there, and the kernel does not run again. So those kernels leave their receipts
in the home, too, before they let go of a row:

    receipts/<run>-<random>/<random>   one JSON object; the folder is that of one job, and goes with it
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam

from nosync.journal.names import LEFT_RECEIPTS, RECEIPTS
from nosync.model.errors import MALFORMED, Failed, Unavailable
from nosync.model.hash_range import ALL_HASHES, HashRange
from nosync.model.identifiers import Epoch, Shard, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.places import Sharing
from nosync.peers.client import tell
from nosync.state.private import make_folder, open_private
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

    @property
    def part(self) -> tuple[TraceName, Shard, HashRange]:
        return self.trace, self.shard, self.range or ALL_HASHES


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
        known = chosen.setdefault(receipt.part, receipt)
        if receipt.layer is not None and receipt.layer.place:
            chosen[receipt.part] = receipt  # the host of an earlier attempt may be gone
        if _checksum(known) != _checksum(receipt):
            raise Failed(
                f'trace "{receipt.trace}", shard {receipt.shard}: two attempts at epoch {receipt.epoch} gave different results',
                hint="A function or source of this flow is not deterministic: the same input must give the same rows.",
            )
    return [chosen[part] for part in sorted(chosen)]


def _checksum(receipt: Receipt) -> str:
    return receipt.layer.checksum if receipt.layer else ""


def folder_for(home: str, run: str) -> str:
    """Where the kernels of one job leave receipts; made by the first of them."""
    return f"{home}/{RECEIPTS}/{run}-{uuid.uuid4().hex[:8]}"


def leave(folder: str, receipt: Receipt, sharing: Sharing | None = None) -> None:
    """In the home, for `left_in`. `sharing`: who writes it there for tasks that do not see the home."""
    layer = receipt.layer and receipt.layer.to_json()
    facts = {"trace": receipt.trace, "shard": receipt.shard, "epoch": receipt.epoch, "rows": receipt.rows, "layer": layer}
    facts["range"] = receipt.range and str(receipt.range)
    if sharing is not None:
        return tell(sharing, sharing.driver, "receipt", {"folder": Path(folder).name, "facts": facts})
    make_folder(Path(folder))
    with open(f"{folder}/{uuid.uuid4().hex}", "x", opener=open_private) as file:
        file.write(json.dumps(facts))


def left_in(folder: str) -> list[Receipt]:
    """What the kernels of a job have left, those of attempts that failed among them. One that was killed while it wrote has let go of no
    row.
    """
    found: list[Receipt] = []
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with suppress(*MALFORMED):
            facts = json.loads(Path(folder, name).read_text())
            layer = facts["layer"] and LayerInfo.from_json(facts["layer"])
            held = facts["range"] and HashRange.parse(facts["range"])
            found.append(Receipt(facts["trace"], facts["shard"], facts["epoch"], facts["rows"], layer, range=held))
    return found


def completed(handed_in: Iterable[Receipt], left: Iterable[Receipt]) -> list[Receipt]:
    """With what kernels have left whose task failed after them. `Unavailable` where that is not clear: of the input of an attempt that
    failed a part may have been missing.
    """
    known = list(handed_in)
    there = {receipt.part for receipt in known}
    lost: dict[tuple[TraceName, Shard, HashRange], Receipt] = {}
    for receipt in left:
        if receipt.part not in there and _checksum(lost.setdefault(receipt.part, receipt)) != _checksum(receipt):
            words = f"epoch {receipt.epoch} was interrupted: tasks failed, and left different results"
            raise Unavailable(words, hint="It is computed again.")
    return known + list(lost.values())


def clear(home: str) -> None:
    """What earlier runs have left."""
    for name in os.listdir(f"{home}/{RECEIPTS}") if os.path.isdir(f"{home}/{RECEIPTS}") else ():
        if LEFT_RECEIPTS.fullmatch(name):
            forget(f"{home}/{RECEIPTS}/{name}")


def forget(folder: str) -> None:
    """The job has come to its end."""
    shutil.rmtree(folder, ignore_errors=True)
