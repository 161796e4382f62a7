"""Writing to the journal of a home at rest, for commands that change what the next start finds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nosync.history.home import open as open_home
from nosync.history.status import ENDED
from nosync.journal.journal import Journal
from nosync.journal.names import record_name
from nosync.model.errors import Conflict
from nosync.model.identifiers import RecordNumber
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


@contextmanager
def resting_journal(home: Path, remote: str | None) -> Iterator[Journal]:
    """The journal, to append to; afterwards everything is on the disk, and on the remote where there is one. Refused while a run is
    going.
    """
    status = open_home(home).status
    if status.phase not in (*ENDED, "interrupted"):
        raise Conflict(f'flow "{status.flow}" is running on this home', hint="Stop it first, or do it with the run itself.")
    disk = LocalDisk(home)
    journal = Journal(disk, open_remote(remote) if remote else None, this_process(0.0))
    yield journal
    records = [record_name(RecordNumber(number)) for number in range(journal.chain.number + 1, journal.number + 1)]
    disk.sync_files(records)
    disk.sync_folders(records)
    while journal.remote is not None and journal.shipped < journal.number:
        journal.ship()
