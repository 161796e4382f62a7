"""Writing to the journal of a home at rest, for commands that change what the next start finds."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nosync.history.home import open as open_home
from nosync.history.status import ENDED
from nosync.journal.joining import histories
from nosync.journal.journal import Journal
from nosync.journal.names import RUNS, lease_name, newest_generation, record_name
from nosync.model.errors import Conflict
from nosync.model.identifiers import RecordNumber
from nosync.model.lease import Lease
from nosync.model.run import this_process
from nosync.model.store import Disk, Remote
from nosync.recovery.check import is_whole
from nosync.recovery.restore import check_whole
from nosync.recovery.survey import doubtful
from nosync.recovery.suspicion import suspected
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.host import synced_number


@contextmanager
def resting_journal(home: Path, remote: str | None, whole: bool = False) -> Iterator[Journal]:
    """The journal, to append to; afterwards everything is on the disk, and on the remote where there is one. Refused while a run is
    going, here or on another host; with `whole` also where a start would have something to put together first.
    """
    status, process = open_home(home).status, this_process(0.0)
    if status.phase not in (*ENDED, "interrupted"):
        raise Conflict(f'flow "{status.flow}" is running on this home', hint="Stop it first, or do it with the run itself.")
    disk, there = LocalDisk(home), open_remote(remote) if remote else None
    if there is not None:
        _check_nobody_leads(disk, there)
    if whole:
        chain = histories(disk, there).believed
        doubted = doubtful(chain, synced_number(disk, chain), process.boot) | suspected(disk, chain.image())
        check_whole(chain, disk, partial(is_whole, home), doubted)
    journal = Journal(disk, there, process)
    yield journal
    records = [record_name(RecordNumber(number)) for number in range(journal.chain.number + 1, journal.number + 1)]
    disk.sync_files(records)
    disk.sync_folders(records)
    while journal.remote is not None and journal.shipped < journal.number:
        journal.ship()


def _check_nobody_leads(disk: Disk, remote: Remote) -> None:
    """A home that was left behind must not end the run that has gone on elsewhere."""
    newest = newest_generation(remote.sizes(RUNS))
    lease = Lease.from_bytes(remote.read(lease_name(newest)))
    if lease is not None and not lease.ended and newest > newest_generation(disk.sizes(RUNS)):
        raise Conflict(
            f"process {lease.process} on {lease.host} has taken the flow over from this home, and has not ended",
            hint="Do it there, or with the run itself. If that host is gone, start the flow here first.",
        )
