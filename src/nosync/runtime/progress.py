"""What an epoch did, in the form of PySpark's own streaming progress."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from nosync.duties.upkeep import Upkeep
from nosync.journal.image import Image
from nosync.model.footprint import Footprint
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Covers
from nosync.model.progress import Progress
from nosync.runtime.epochs import Step
from nosync.spark.receipts import Receipt


def progress(
    step: Step, millis: dict[str, int], image: Image, run: str, upkeep: Upkeep, delays: Mapping[str, int], since: float,
    lags: Mapping[str, Mapping[str, int]], newest_bytes: int, footprint: Footprint | None = None,
) -> Progress:
    """One epoch: input, time, state, and how far it is from being safe. `delays`: those of sources with a watermark, in microseconds;
    `since`: when the epoch before was opened, in seconds since 1970, or 0. `lags`: what sources have by partition that no epoch has taken.
    `newest_bytes`: those of the newest state. `footprint`: as it was last measured, which is not done each epoch.
    """
    opened, rows, rejected = step.opened, step.outcome.rows, step.outcome.rejected
    total = sum(rows.values())
    seconds = max(millis["triggerExecution"], 1) / 1e3
    return Progress({
        "id": image.history,
        "runId": run,
        "name": image.declared.flow if image.declared else "",
        "timestamp": _iso(opened.at),
        "epoch": opened.epoch,
        "batchId": opened.epoch,
        "batchDuration": millis["triggerExecution"],
        "numInputRows": total,
        "inputRowsPerSecond": round(total / (opened.at - since), 1) if 0 < since < opened.at else 0.0,
        "processedRowsPerSecond": round(total / seconds, 1),
        "rejectedRows": sum(rejected.values()),
        "durationMs": millis,
        "way": step.outcome.way,
        "sources": [
            {"description": name, "numInputRows": rows.get(name, 0), "rejectedRows": rejected.get(name, 0)}
            | ({"lag": dict(lags[name])} if name in lags else {})
            for name in opened.slices
        ],
        "lateRows": sum(step.outcome.late.values()),
        "eventTime": _event_time(image, opened.epoch, delays),
        "stateOperators": _traces(step.outcome.receipts, step.outcome.late, image),
        "storage": _storage(image, newest_bytes, footprint),
        "memory": _memory(footprint),
        "safe": upkeep.safe(),
        "tiers": upkeep.report(),
        "sinks": [{"description": name, "epoch": epoch} for name, epoch in upkeep.releaser.delivered.items()],
    })  # fmt: skip


class NewestBytes:
    """The bytes of the newest state; of traces that have not changed since the last look they are known."""

    def __init__(self) -> None:
        self._known: dict[TraceName, tuple[Covers, int]] = {}

    def of(self, image: Image) -> int:
        """An image never changes covers, it has others in their place."""
        self._known = {trace: self._weighed(trace, covers) for trace, covers in image.newest.items()}
        return sum(size for _, size in self._known.values())

    def _weighed(self, trace: TraceName, covers: Covers) -> tuple[Covers, int]:
        known = self._known.get(trace)
        if known is not None and known[0] is covers:
            return known
        return covers, sum({layer.path: layer.bytes for found in covers.values() for layer in found}.values())


def _storage(image: Image, newest: int, footprint: Footprint | None) -> dict[str, Any]:
    """Layers, and their bytes by what they are for; files of all kinds, the input log, and what the ladder gives up next, as measured."""
    whole = sum(image.kept_bytes.values())
    amplification = round(whole / newest, 2) if newest else 1.0
    found = {"layers": image.kept_layers, "newestBytes": newest, "historyBytes": whole - newest, "spaceAmplification": amplification}
    if footprint is None:
        return found
    gives_up = {"at": footprint.gives_up[0], "epochs": footprint.gives_up[1]} if footprint.gives_up else None
    return found | {"files": footprint.files, "inputBytes": footprint.input_bytes, "givesUpNext": gives_up}


def _memory(footprint: Footprint | None) -> dict[str, int]:
    """Of all processes of the run (PSS), and of the JVM's heap, as measured."""
    if footprint is None:
        return {}
    heap = {"heapUsedBytes": footprint.heap_used, "heapLiveBytes": footprint.heap_live, "heapMaxBytes": footprint.heap_most}
    return {"processBytes": footprint.process_bytes, **heap}


def _event_time(image: Image, epoch: Epoch, delays: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """By source the newest time so far, and the watermark by which the epoch was computed: that of the epochs before."""
    found = {name: {"max": _iso(time / 1e6)} for name, time in image.seen_before(epoch + 1).items()}
    for name, time in image.seen_before(epoch).items():
        if name in delays:
            found[name]["watermark"] = _iso((time - delays[name]) / 1e6)
    return found


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traces(receipts: Sequence[Receipt], late: Mapping[TraceName, int], image: Image) -> list[dict[str, Any]]:
    """Figures by trace, which PySpark's form calls an operator."""
    by_name: dict[TraceName, dict[str, Any]] = {}
    for trace, count in late.items():
        by_name[trace] = _blank(trace) | {"numRowsDroppedByWatermark": count}
    for receipt in receipts:
        figures = by_name.setdefault(receipt.trace, _blank(receipt.trace))
        figures["numRowsInput"] += receipt.rows
        figures["numRowsUpdated"] += receipt.layer.rows if receipt.layer else 0
        figures["taskMs"] = max(figures["taskMs"], receipt.millis)
        if receipt.bloom and receipt.bloom.asked:
            before = figures.get("bloomFilter", {})
            figures["bloomFilter"] = {name: before.get(name, 0) + count for name, count in asdict(receipt.bloom).items()}
    for name, figures in by_name.items():
        newest = [layer for found in image.newest.get(name, {}).values() for layer in found]
        size = sum(layer.bytes for layer in newest)
        figures["layers"] = len(newest)
        figures["stateBytes"] = size
        figures["spaceAmplification"] = round(image.kept_bytes[name] / size, 2) if size else 1.0
    return list(by_name.values())


def _blank(trace: TraceName) -> dict[str, Any]:
    return {"operatorName": trace, "numRowsInput": 0, "numRowsUpdated": 0, "numRowsDroppedByWatermark": 0, "taskMs": 0.0}
