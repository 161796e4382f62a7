"""Trims sources: lets them drop what nobody will ask for again. The boundary is recorded, and on every tier, before anything is deleted."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from nosync.journal.entries import Opened, Trimmed
from nosync.journal.journal import Journal
from nosync.journal.names import source_folder
from nosync.journal.past import TieredReader, rolled_openings_of
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, epochs
from nosync.model.safety import Standing
from nosync.model.source import Slice
from nosync.model.store import Store

BATCH = 16
MOST_EPOCHS = 1024  # with one record: so many openings are read back at once, if need be


Trim = Callable[[Slice], None]


class Trimmer:
    """Trims some sources of a flow, some epochs at a time. `boundary` says up to where, for the newest epoch."""

    def __init__(
        self,
        journal: Journal,
        sources: Mapping[str, Trim],
        boundary: Callable[[Epoch], Epoch],
        standings: Callable[[], Sequence[Standing]],
        batch: int = BATCH,
    ) -> None:
        self.journal, self.sources, self.boundary, self.standings, self.batch = journal, sources, boundary, standings, batch
        self.trimmed = {source: journal.image.trim_done.get(source, NO_EPOCH) for source in sources}
        self.recorded = {source: (journal.image.trimmed.get(source, NO_EPOCH), journal.number) for source in sources}

    def step(self) -> bool:
        did = [self._step(source) for source in self.sources]
        return any(did)

    def _step(self, source: str) -> bool:
        epoch, number = self.recorded[source]
        if self.trimmed[source] < epoch:
            return self._trim(source, epoch, number)
        with self.journal.lock:
            due = self.boundary(self.journal.image.epoch)
        if due < epoch + self.batch:
            return False
        due = min(due, epoch + MOST_EPOCHS)
        self.recorded[source] = (due, self.journal.append(Trimmed(source, due, epoch)))
        return True

    def _trim(self, source: str, epoch: Epoch, number: RecordNumber) -> bool:
        if any(tier.number < number for tier in self.standings()):
            return False
        self.journal.look()
        own: list[str] = []
        for entry in self._openings(epochs(self.trimmed[source] + 1, epoch)):
            if source in entry.slices:
                self.sources[source](entry.slices[source])
                own += [name for name in entry.files if name.startswith(source_folder(source) + "/")]
        self._delete(own)
        self.trimmed[source] = epoch
        return True

    def _openings(self, wanted: Iterable[Epoch]) -> list[Opened]:
        """As the journal has them; those that were rolled up meanwhile are read back."""
        journal, rolled = self.journal, set(wanted)
        with journal.lock:
            base, known = journal.base, {epoch: journal.image.opened[epoch] for epoch in rolled if epoch in journal.image.opened}
        rolled -= known.keys()
        if rolled:
            known |= rolled_openings_of(TieredReader(journal.disk, journal.remote), base, rolled, len(rolled))
        return [known[epoch] for epoch in sorted(known)]

    def _delete(self, names: list[str]) -> None:
        """Input of ours, wherever it lies. Synced: a restart of the host would bring it back, and nobody looks there again."""
        stores: list[Store | None] = [self.journal.disk, self.journal.remote]
        for store in stores:
            if store is not None:
                for name in names:
                    store.delete(name)
        self.journal.disk.sync_folders(names)
