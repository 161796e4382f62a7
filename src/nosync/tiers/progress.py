"""How far a tier has come, read off the journal."""

from collections.abc import Iterable

from nosync.journal.entries import Restored, TakenOver
from nosync.journal.image import Image
from nosync.journal.record import Record
from nosync.model.identifiers import Epoch, RecordNumber


def epoch_before(image: Image, unknown: Iterable[Record], number: RecordNumber) -> Epoch:
    """The newest epoch that the first `number` records make known, with layers that they name; `unknown` are those behind. What the image
    has forgotten is on every tier. (A running journal keeps this by itself, see `Journal.computed_by`.) Pure.
    """
    after = [epoch for epoch, record in image.computed_in.items() if record > number]
    restored = [entry for record in unknown for entry in record.entries if isinstance(entry, Restored | TakenOver)]
    return min([image.epoch, *(epoch - 1 for epoch in after), *(layer.lower - 1 for entry in restored for layer in entry.layers)])


def opened_before(image: Image, number: RecordNumber) -> Epoch:
    """The newest computed epoch that was opened, with all before it, in the first `number` records. As `Journal.opened_by`. Pure."""
    return min([image.epoch, *(epoch - 1 for epoch, record in image.opened_in.items() if record > number)])
