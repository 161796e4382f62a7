"""Pins: epochs that stay readable under a name until somebody drops it."""

from nosync.journal.entries import Pinned, Unpinned
from nosync.journal.journal import Journal
from nosync.model.errors import Invalid, NotInHistory
from nosync.model.identifiers import Epoch
from nosync.model.moment import is_moment
from nosync.model.quoting import check_name
from nosync.model.retention import not_there


def pin(journal: Journal, name: str, epoch: Epoch) -> None:
    """From here on the epoch is held. `NotInHistory` where it is not kept any more, or not there yet."""
    check_name(name, "a pin")
    with journal.lock:
        image = journal.image
        if image.pins.get(name) == epoch:
            return
        if name in image.pins:
            raise Invalid(f'pin "{name}" holds epoch {image.pins[name]}', hint="Drop it first, or choose another name.")
        if is_moment(name):
            words = f'"{name}" is no name for a pin: at="{name}" would mean an epoch or a time'
            raise Invalid(words, hint='Choose another, such as "before the sale".')
        if not 1 <= epoch <= image.epoch or epoch not in image.kept:
            near = " or ".join(str(one) for one in image.kept.near(epoch) if one <= image.epoch)
            words = f"epoch {epoch} {not_there(epoch, image.epoch)}"
            raise NotInHistory(words, hint=f"Pin epoch {near}." if near else "No epoch has been computed yet.")
        journal.append(Pinned(name, epoch))


def unpin(journal: Journal, name: str) -> None:
    """The epoch is held by nothing but the ladder from here on."""
    with journal.lock:
        if name not in journal.image.pins:
            raise Invalid(f'there is no pin "{name}"', hint=f"There are: {', '.join(sorted(journal.image.pins)) or 'none'}.")
        journal.append(Unpinned(name))
