"""Which epoch `at=` means, for a running flow and for a home alike."""

import time
from collections.abc import Callable, Iterable

from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.model.errors import NotInHistory
from nosync.model.identifiers import Epoch
from nosync.model.moment import At, Moment, moment_of
from nosync.model.text import iso_seconds


def epoch_at(
    at: At, image: Image, past: Callable[[], Iterable[Opened]], safe: Callable[[], Epoch], clock: Callable[[], float] = time.time
) -> Epoch | None:
    """The epoch meant; None for the newest. Of a time it is the newest computed one that was opened by then; names of pins come first.

    `past` gives the openings that the image has forgotten. It is asked only for times before those: that costs O(history).
    """
    if isinstance(at, str) and at in image.pins:
        return image.pins[at]
    meant = moment_of(at, clock())
    if meant == "safe":
        return safe()
    if not isinstance(meant, Moment):
        return meant
    known = {epoch: opened.at for epoch, opened in image.opened.items() if epoch <= image.epoch}
    if not any(opened_at <= meant.time for opened_at in known.values()):
        known = {entry.epoch: entry.at for entry in past() if entry.epoch <= image.epoch} | known
    found = [epoch for epoch, opened_at in known.items() if opened_at <= meant.time]
    if not found:
        first = iso_seconds(known[min(known)]) if known else ""
        hint = f"The first epoch was opened at {first}." if first else "No epoch has been computed yet."
        raise NotInHistory(f'no epoch had been opened at "{meant.said}"', hint=hint)
    return max(found)
