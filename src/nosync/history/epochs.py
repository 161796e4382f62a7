"""The epochs of a flow as a table: when, from what, with which result."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from nosync.journal.entries import Computed, Opened, RolledBack
from nosync.journal.image import Image
from nosync.journal.past import Stretch
from nosync.model.identifiers import Epoch, TraceName

COUNTS = pa.map_(pa.string(), pa.int64())
SCHEMA = pa.schema(
    [
        ("epoch", pa.int64()),
        ("opened_at", pa.timestamp("us", "UTC")),
        ("kept", pa.bool_()),  # whether the state can be read as of it
        ("slices", pa.map_(pa.string(), pa.string())),  # by source, as JSON
        ("rows_in", COUNTS),  # by source
        ("rejected", COUNTS),  # by source
        ("rows_out", COUNTS),  # by view: rows that were added, replaced or removed; null where that was given up
        ("layers", pa.int64()),  # null where that was given up, as are the bytes
        ("bytes", pa.int64()),
        ("safe_for", pa.list_(pa.string())),  # the failures that the epoch survives
    ]
)


def epochs_of(parts: Iterable[Stretch], image: Image, safe: Mapping[str, int], views: Mapping[str, TraceName]) -> pa.Table:
    """All epochs that the journal knows, computed or not."""
    opened: dict[Epoch, Opened] = {}
    computed: dict[Epoch, tuple[Computed, bool]] = {}
    for entry, whole in ((entry, part.whole) for part in parts for entry in part.entries):
        match entry:
            case Opened():
                opened[entry.epoch] = entry
            case Computed():
                computed[entry.epoch] = entry, whole
            case RolledBack():
                opened = {epoch: one for epoch, one in opened.items() if epoch <= entry.epoch}
                computed = {epoch: one for epoch, one in computed.items() if epoch <= entry.epoch}
    rows = [_row(opened[epoch], computed.get(epoch), image, safe, views) for epoch in sorted(opened)]
    return pa.Table.from_pylist(rows, SCHEMA)


def _row(
    opened: Opened, known: tuple[Computed, bool] | None, image: Image, safe: Mapping[str, int], views: Mapping[str, TraceName]
) -> dict[str, Any]:
    """Without what only its layers say, where those are not on record any more."""
    computed, whole = known or (None, True)
    layers = computed.layers if computed else ()
    changed = {name: sum(layer.rows for layer in layers if layer.trace == trace) for name, trace in views.items()}
    return {
        "epoch": opened.epoch,
        "opened_at": round(opened.at * 1e6),
        "kept": computed is not None and opened.epoch in image.kept,
        "slices": [(name, json.dumps(slice, default=str)) for name, slice in opened.slices.items()],
        "rows_in": list(computed.rows.items()) if computed else [],
        "rejected": list(computed.rejected.items()) if computed else [],
        "rows_out": [(name, rows) for name, rows in changed.items() if rows] if whole else None,
        "layers": len(layers) if whole else None,
        "bytes": sum(layer.bytes for layer in layers) if whole else None,
        "safe_for": sorted(kind for kind, epoch in safe.items() if computed and opened.epoch <= epoch),
    }
