"""What a run does when a host is gone with layers that nobody else has: it makes them again, and goes on.

That is the ordinary recovery, in the middle of a run and between two epochs: what can still be had is fetched into the home first; only the
shards that were lost are recomputed, for the epochs that were lost. Everything behind the stream goes on meanwhile.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from nosync.journal.journal import Journal
from nosync.model.errors import Internal, Unavailable
from nosync.peers.arrivals import Arrivals
from nosync.recovery.restore import Recovered


@dataclass
class Mending:
    """`recover` is the ordinary recovery, told which files may be lost; `still` waits until nothing makes new layers of those. `opening`:
    while it is held no epoch is opened.
    """

    journal: Journal
    arrivals: Arrivals
    recover: Callable[[frozenset[str]], Recovered]
    still: Callable[[], None]
    opening: AbstractContextManager[object]
    due: bool = False
    mended: list[Recovered] = field(default_factory=list)

    def failed(self, error: Unavailable) -> None:
        """An epoch could not be computed now: a layer that it needs may be lost."""
        self.due = True

    def step(self) -> bool:
        """Makes again what is lost, if anything is; says whether. Called between epochs."""
        if not self.due and not self.arrivals.lost:
            return False
        self.still()
        with self.journal.lock:
            needed = self.journal.image.newest_layers()
        missing = self.arrivals.bring(needed)
        if missing:
            self._make_again()
        self.due, self.arrivals.failures = False, 0
        return bool(missing)

    def _make_again(self) -> None:
        with self.opening:
            done = self.recover(frozenset(self.arrivals.coming()))
        if done.rolled_back:
            raise Internal("input was lost with a host of the cluster", hint="Start the flow on the same home again.")
        self.mended.append(done)
