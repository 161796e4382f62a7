"""How far a tier has come, read off the journal."""

from nosync.journal.entries import Restored
from nosync.journal.journal import Journal


def epoch_on(journal: Journal, number: int) -> int:
    """The newest epoch that the first `number` records make known, with layers that they name. What the image has forgotten is on every
    tier.
    """
    with journal.lock:
        image, unknown = journal.image, journal.after(number)
        late = [epoch for epoch, record in image.computed_in.items() if record > number]
        restored = [entry for record in unknown for entry in record.entries if isinstance(entry, Restored)]
        return min([image.epoch, *(epoch - 1 for epoch in late), *(layer.lower - 1 for entry in restored for layer in entry.layers)])
