"""What a start looks at before it fences anybody. What is refused here leaves a run that is going on elsewhere alone.

Called first, with the folder as it is; then the program is held against the history, and `restore.check_recoverable` against the state.
"""

from pathlib import Path

from nosync.journal.chain import Chain
from nosync.journal.joining import histories
from nosync.model.store import Disk, Remote
from nosync.store.homes import refuse_foreign_folder
from nosync.store.probe import check_creation


def history_of(home: Path, disk: Disk, remote: Remote | None, detached: bool = False, tried: bool = False) -> Chain:
    """What a start goes on with; empty for a new flow. `Invalid` for a folder that is no home, a remote that was left out (unless
    `detached` says so), that belongs to another flow, or that cannot keep two runs apart; `tried`: that it can was found out before.
    """
    refuse_foreign_folder(home)
    found = histories(disk, remote, detached)
    before = found.home.image().started
    if remote is not None and not tried and (before is None or before.remote != remote.address):
        check_creation(remote)
    return found.believed
