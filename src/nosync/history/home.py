"""A home opened for reading: any view as of any kept epoch, without Spark and without the running flow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from nosync.history.reader import rows
from nosync.history.record import ViewRecord
from nosync.journal.image import Image
from nosync.journal.journal import read
from nosync.model.errors import Corrupt, Invalid, NotInHistory
from nosync.state.layer import open_layer
from nosync.state.spine import space_amplification


def open(home: str | Path) -> "Home":
    """The flow in this folder as of now. A running flow is not disturbed; open again to see newer epochs."""
    return Home(Path(home))


class Home:
    """What a flow has left in its home."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.image = read(path)
        if self.image.declared is None:
            raise Corrupt(f'"{path}" has no declaration', hint="Start the flow on this home again.")
        self._records = {name: ViewRecord.from_json(text) for name, text in self.image.declared.views.items()}

    @property
    def epoch(self) -> int:
        """The newest computed epoch; 0 before the first."""
        return self.image.epoch

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(self._records)

    def schema(self, name: str) -> pa.Schema:
        return find_view(self._records, name).schema

    def view(self, name: str, at: int | None = None) -> pa.Table:
        """All rows of the view as of an epoch (the newest by default)."""
        return pa.Table.from_batches(self.batches(name, at), self.schema(name))

    def batches(self, name: str, at: int | None = None) -> Iterator[pa.RecordBatch]:
        """The same rows block by block, for views larger than memory."""
        record = find_view(self._records, name)
        covers = covers_at(self.image, record, name, at)
        for shard in sorted({0, *covers}) if self.epoch else ():
            layers = [open_layer(self.path, layer) for layer in covers.get(shard, ())]
            yield from rows(record, layers, owns_whole=shard == 0)

    def status(self) -> dict[str, Any]:
        """Figures for people and programs."""
        image = self.image
        layers, newest = image.layers(), image.newest_layers()
        assert image.declared is not None
        return {
            "flow": image.declared.flow,
            "epoch": image.epoch,
            "shards": image.declared.shards,
            "views": list(self.views),
            "rows": image.rows,
            "rejected": image.rejected,
            "layers": len(layers),
            "bytes": sum(layer.bytes for layer in layers),
            "spaceAmplification": round(space_amplification(layers, newest), 2),
        }


def find_view(records: dict[str, ViewRecord], name: str) -> ViewRecord:
    if name not in records:
        raise Invalid(f'there is no view "{name}"', hint=f"There are: {', '.join(sorted(records)) or 'none'}.")
    return records[name]


def covers_at(image: Image, record: ViewRecord, name: str, at: int | None) -> dict[int, Any]:
    """The covers to read; refuses an epoch that is not kept."""
    if at is not None and not 1 <= at <= image.epoch:
        kept = f"Ask for epoch 1 to {image.epoch}." if image.epoch else "No epoch has been computed yet."
        raise NotInHistory(f'epoch {at} of view "{name}" is not kept', hint=kept)
    return image.covers(record.operator, image.epoch if at is None else at)
