"""Brings home, behind the stream, what tasks wrote on other hosts.

Promise: every layer that a record up to `number` names, and that is still of use, is in the home. From there on the tiers, sinks, merges
and readers find it as ever: whatever needs layers in the home waits for `number`. No epoch does.

A layer that its host does not give, time and again, is taken for lost with the host: `lost` says so, and the run makes it again (see
`runtime.mending`). To be wrong in that costs computing it once more.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from nosync.journal.journal import Journal
from nosync.journal.recent import layers_of
from nosync.journal.record import Record
from nosync.model.errors import Unavailable
from nosync.model.identifiers import RecordNumber
from nosync.model.layers import LayerInfo
from nosync.model.places import HOME, Place
from nosync.model.safety import Standing
from nosync.model.store import Disk
from nosync.peers.client import Unanswered

Fetch = Callable[[LayerInfo], None]
Tell = Callable[[Place, Sequence[str]], None]
AT_ONCE = 8
RECORDS = 64  # that are looked at together
FAILURES = 3


class Arrivals:
    """Of one run, whose records begin behind `number`. `fetch` brings a layer into the home or raises `Unanswered`; `tell` lets a place
    know which of its layers are there now.
    """

    def __init__(self, journal: Journal, disk: Disk, fetch: Fetch, tell: Tell, number: RecordNumber) -> None:
        self.journal, self.disk, self._fetch, self._tell = journal, disk, fetch, tell
        self.number = number
        self.places: set[Place] = set()
        self.files, self.bytes, self.failures = 0, 0, 0
        self._lock = threading.RLock()
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nosync arrivals")

    @property
    def lost(self) -> bool:
        """Whether something seems to come no more."""
        return self.failures >= FAILURES

    def reached(self) -> RecordNumber:
        return self.number

    def step(self) -> bool:
        """Brings what is new; says whether there was anything."""
        with self._lock:
            records = self._behind()[:RECORDS]
            if not records:
                return False
            wanted = [layer for record in records for layer in layers_of(record)]
            missing = self.bring(wanted)
            if missing and (missing := self._named(missing)):
                self.failures += 1
                raise Unavailable(next(iter(missing.values())), hint="It is asked for again, and computed again if it is lost.")
            self.number, self.failures = records[-1].number, 0
            return True

    def catch_up(self) -> None:
        """Waits until all that is recorded by now is in the home."""
        until = self.journal.number
        while self.number < until:
            self.step()

    def bring(self, layers: Iterable[LayerInfo]) -> dict[str, str]:
        """Fetches those that are not in the home; of those that do not come, by path, why. One at a time: what is there may be synced, and
        would not be any more if it were written again.
        """
        with self._lock:
            return self._bring(layers)

    def _bring(self, layers: Iterable[LayerInfo]) -> dict[str, str]:
        coming = {layer.path: layer for layer in layers if self._is_elsewhere(layer) and self.disk.size(layer.path) != layer.bytes}
        self.places |= {layer.place for layer in coming.values()}
        gone: dict[Place, str] = {}
        reasons = dict(zip(coming, self._pool.map(lambda layer: self._brought(layer, gone), coming.values())))
        came = [layer for layer in coming.values() if not reasons[layer.path]]
        self.files += len(came)
        self.bytes += sum(layer.bytes for layer in came)
        for place in {layer.place for layer in came}:
            with suppress(Unavailable):  # then the layers stay there for longer
                self._tell(place, [layer.path for layer in came if layer.place == place])
        return {path: reason for path, reason in reasons.items() if reason}

    def _brought(self, layer: LayerInfo, gone: dict[Place, str]) -> str:
        """Why it did not come; empty where it did. A place that did not answer is not asked again at once."""
        if layer.place not in gone:
            try:
                self._fetch(layer)
                return ""
            except Unanswered as error:
                gone[layer.place] = error.message
        return gone[layer.place]

    def _named(self, missing: Mapping[str, str]) -> dict[str, str]:
        """Those that are of use: a recovery may have found others in their place meanwhile."""
        named = {layer.path for layer in self.journal.snapshot()[0].layers()}
        return {path: reason for path, reason in missing.items() if path in named}

    def is_coming(self, layer: LayerInfo) -> bool:
        """Whether the layer is on its way."""
        return self._is_elsewhere(layer) and layer.path in self.coming()

    def coming(self) -> set[str]:
        """The layers that are on their way."""
        return {layer.path for record in self._behind() for layer in layers_of(record) if self._is_elsewhere(layer)}

    def _is_elsewhere(self, layer: LayerInfo) -> bool:
        """Whether a task of this run has written it. What those before have left to their executors is gone with them, and has been seen to
        by the recovery: a record of that may still name layers which the remote alone has, and nobody needs here.
        """
        return layer.place != HOME and f"-{self.journal.run}-" in layer.path

    def _behind(self) -> list[Record]:
        return self.journal.after(self.number)

    def standing(self) -> Standing:
        """What survives the loss of any one executor's host."""
        with self.journal.lock:
            behind = self.journal.recent.bytes_after(self.number)
            epoch = self.journal.computed_by(self.number)
        return Standing("executor", self.number, epoch, behind, self.files, self.bytes)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
