"""The tier that survives a restart of the host: files and folders of the home, fsynced behind the stream.

One call of `step` syncs everything that is new at once, so that many epochs share one commit of the file system. A record that survives
without its layers does no harm: recovery looks at what is there. Merged layers can be large, and their inputs are kept: they are synced
when nothing else is to do or when there are many, and no safe point waits for them.

    HOME/synced   "<number> <digest>": all files named in records up to this one are synced, as long as the chain has that digest there;
                  followed by " records": all but the layers
"""

from collections.abc import Callable

from nosync.journal.chain import Chain
from nosync.journal.entries import Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import record_name
from nosync.journal.recent import layers_of
from nosync.journal.record import Record
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber
from nosync.model.safety import Standing
from nosync.model.store import Disk

SYNCED = "synced"
MOST_MERGED = 8  # merged layers that are synced at once; more of them do not wait for the stream to rest


class HostTier:
    """The home's own disk. Records up to `number` are synced with the layers of their epochs, up to `synced` with merged layers too.
    Without `layers`, records and input alone. `arrived`: up to which record layers are in the home, where others write them. All records
    are synced before any of these counts: a later one may say that an earlier layer is lost, and what came of that.
    """

    def __init__(
        self, journal: Journal, disk: Disk, layers: bool = True, arrived: Callable[[], RecordNumber] | None = None
    ) -> None:
        self.journal, self.disk, self.layers, self.arrived = journal, disk, layers, arrived
        self.number = max(synced_number(disk, journal.chain, layers), journal.base)
        self.synced = self.number
        self.epoch = self._safe()
        self.merged: list[str] = []
        self.files = 0
        self.bytes = 0

    def standing(self) -> Standing:
        with self.journal.lock:
            recent = self.journal.recent
            behind = recent.bytes_after(self.number) if self.layers else recent.record_bytes_after(self.number)
        return Standing("host", self.number, self.epoch, behind, self.files, self.bytes)

    def step(self) -> bool:
        """Syncs what is new; says whether anything was."""
        last = self.arrived() if self.arrived is not None and self.layers else None
        known = self.journal.after(self.number)  # asked after: a record for which a layer need not come any more is among them
        records = known if last is None else [record for record in known if record.number <= last]
        if not records:
            return self._sync_merged()
        layers = [layer for record in records for layer in layers_of(record) if self.layers]
        files = [name for record in records for entry in record.entries if isinstance(entry, Opened) for name in entry.files]
        self._sync([*(layer.path for layer in layers), *files, *(record_name(record.number) for record in known)])
        self.bytes += sum(layer.bytes for layer in layers) + sum(len(record.content) for record in records)
        self._mark_synced(records)
        if len(self.merged) > MOST_MERGED:
            self._sync_merged()
        return True

    def _sync(self, names: list[str]) -> None:
        self.disk.sync_files(names)
        self.disk.sync_folders(names)
        self.files += len(names)

    def _mark_synced(self, records: list[Record]) -> None:
        entries = [entry for record in records for entry in record.entries if self.layers]
        self.merged += [entry.layer.path for entry in entries if isinstance(entry, Merged)]
        self.number, self.digest = records[-1].number, records[-1].digest
        self.epoch = self._safe()
        if not self.merged:
            self._claim()

    def _safe(self) -> Epoch:
        return self.journal.computed_by(self.number) if self.layers else self.journal.opened_by(self.number)

    def _sync_merged(self) -> bool:
        """Syncs some merged layers."""
        if not self.merged:
            return False
        self._sync(self.merged[:MOST_MERGED])
        del self.merged[:MOST_MERGED]  # only now: after a failure they are synced again before anything is claimed
        if not self.merged:
            self._claim()
        return True

    def _claim(self) -> None:
        self.disk.replace(SYNCED, f"{self.number} {self.digest}{'' if self.layers else ' records'}".encode())
        self.synced = self.number


def synced_number(disk: Disk, chain: Chain, layers: bool = True) -> RecordNumber:
    """Up to which record this home's files are known to be synced, the layers too or all but them."""
    number, _, rest = (disk.read(SYNCED) or b"").partition(b" ")
    digest, _, alone = rest.partition(b" ")
    if alone and layers:
        return NO_RECORD
    known = RecordNumber(number) if number.isdigit() and len(number) <= 16 else NO_RECORD
    return known if chain.base <= known <= chain.number and chain.digest_at(known).encode() == digest else NO_RECORD
