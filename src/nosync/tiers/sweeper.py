"""Deleting layers that no record names: leftovers of attempts that were repeated, and of runs that died or were fenced.

The boundary is recorded, and synced, before anything behind it is deleted. Swept is only what cannot be recorded any more: files of earlier
runs (they can append nothing), and of this run single epochs that are computed, as far as nothing holds them (see `model.retention`).
Whatever a newer run makes is none of our business. Called again and again, since late attempts leave files late; from the second time on
only what begins where the last look ended is listed. What came later than that for an earlier epoch is found by the next run.
"""

from collections.abc import Callable

from nosync.journal.entries import Swept
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.names import LAYER
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber
from nosync.model.store import Store
from nosync.tiers.inventory import layers_on


class Sweeper:
    """Sweeps one store, some files at a time. `may_go` says up to which epoch, for the newest one; `held` up to which record somebody reads
    what is named (see `leases`).
    """

    def __init__(
        self, journal: Journal, store: Store, may_go: Callable[[Epoch], Epoch], held: Callable[[], RecordNumber | None] = lambda: None
    ) -> None:
        self.journal, self.store, self.may_go, self.held = journal, store, may_go, held
        self.due: list[str] = []
        self.boundary = 0
        self.since = NO_EPOCH
        self.deleted = 0

    def step(self, everywhere: int) -> bool:
        """Deletes what was found, once the boundary is on every tier (they have the records up to `everywhere`)."""
        if not self.due or everywhere < self.boundary or ((held := self.held()) is not None and held < self.boundary):
            return False
        self.journal.look()
        named = {layer.path for layer in self.journal.snapshot()[0].layers()}  # a layer may have come since, and its record before it
        for name in self.due:
            if name not in named:
                self.store.delete(name)
                self.deleted += 1
        self.due = []
        return True

    def look(self, image: Image) -> int:
        """Finds what can be swept, and records that it will be."""
        if not self.due:
            known = {layer.path for layer in image.layers()}
            names = [name for name in layers_on(self.store, image, self.since) if name not in known]
            epoch = self.may_go(image.epoch)
            found = [name for name in names if sweepable(name, self.journal.generation, epoch)]
            if found:
                self.boundary = self.journal.append(Swept(self.journal.generation, epoch))
            self.due, self.since = found, epoch
        return len(self.due)


def sweepable(name: str, generation: int, epoch: Epoch) -> bool:
    """Whether a file that an image does not know can never be named by a record."""
    found = LAYER.fullmatch(name)
    if found is None:
        return False
    made, lower, upper = int(found["generation"]), int(found["lower"]), int(found["upper"])
    return made < generation or (made == generation and upper == lower + 1 and lower <= epoch)
