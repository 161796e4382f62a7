"""What a start would go on with, looked at before anybody is fenced.

Promise: nothing is written here. What is refused, is refused while a run that is going on elsewhere still is.
"""

from dataclasses import dataclass

from nosync.journal.chain import Chain, believed, common, read_chain
from nosync.journal.entries import Computed
from nosync.model.errors import Invalid
from nosync.model.store import Disk, Remote

NO_REMOTE = "none"  # what a user writes to go on without the remote that a home has


@dataclass(frozen=True, slots=True)
class Histories:
    """The chains of both tiers, which join. Empty ones where there is nothing."""

    home: Chain
    remote: Chain

    @property
    def believed(self) -> Chain:
        """The chain to go on with."""
        return believed(self.home, self.remote)


def histories(disk: Disk, remote: Remote | None, detached: bool = False, known: Chain | None = None) -> Histories:
    """Reads both tiers; raises where a start must not go on. `detached` says that the user means to go without a remote; `known` is what
    was read of the remote a moment ago.
    """
    home = read_chain(disk)
    if remote is None:
        _check_left_out(home, detached)
        return Histories(home, Chain())
    found = Histories(home, read_chain(remote, known))
    _check_detached(found)
    return found


def _check_left_out(home: Chain, detached: bool) -> None:
    started = home.image().started
    if started is not None and started.remote and not detached:
        raise Invalid(
            f'this home has a copy on "{started.remote}", and remote= is left out',
            hint=f'Pass remote="{started.remote}". To go on without, pass remote="{NO_REMOTE}" (ns.NO_REMOTE): a start from the copy then '
            "knows nothing of what comes from now on, and would give sinks other rows for the same epochs.",
        )


def _check_detached(found: Histories) -> None:
    """Where the remote is right, epochs of the home never were. Those that it computed without a remote may have been given to sinks."""
    agreed = common(found.home, found.remote)
    if found.believed is not found.remote:
        return
    started = found.home.image().started
    own = [entry for record in found.home.records if record.number > agreed for entry in record.entries]
    if started is not None and not started.remote and any(isinstance(entry, Computed) for entry in own):
        raise Invalid(
            "this home went on without a remote, and the remote without this home: they hold different epochs",
            hint="Start with an empty home to go on from the remote, or with an empty remote to keep what this home has.",
        )
