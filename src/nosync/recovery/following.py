"""A home that keeps up with a remote while a run on another host leads: whoever takes over there has little left to fetch.

Promise: it fetches layers of the newest state under their own names, whole. What was fetched here and is on no record any more is deleted
again, and nothing else. A recovery looks at what is there as ever: it does not rely on this.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nosync.journal.chain import Chain, read_chain
from nosync.journal.image import Image
from nosync.journal.names import RUNS, newest_generation
from nosync.model.layers import LayerInfo
from nosync.model.store import Disk, Remote
from nosync.recovery.survey import Verify
from nosync.state.leaves import leaf_layers, within


@dataclass
class Follower:
    """`stop` it before anybody else writes to the home."""

    disk: Disk
    remote: Remote
    verify: Verify
    chain: Chain = field(default_factory=Chain)
    fetched: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._shared: bool | None = None

    def step(self) -> int:
        """Fetches what the home lacks; gives the number of layers. Nothing is listed but the journal: layers are asked for by name, those
        that others were merged into first, and where one has not arrived yet, those that it was made of.
        """
        self.chain = read_chain(self.remote, self.chain)
        self._shared = self._is_shared() if self._shared is None else self._shared
        if self._shared:
            return 0
        image = self.chain.image()
        known = {layer.path: layer for layer in image.layers()}
        wanted = [layer for layer in image.newest_layers() if not self._here(layer)]
        found = self._fetch(wanted)
        absent = [layer for layer in wanted if layer.path not in found and layer.upper > layer.lower + 1]
        parts = [leaf for whole in absent for leaf in _made_of(whole, image) if not self._here(leaf)]
        found |= self._fetch(parts)
        self._delete({name for name in self.fetched if name not in known})
        return len(found)

    def _here(self, layer: LayerInfo) -> bool:
        return self.disk.size(layer.path) == layer.bytes

    def _fetch(self, layers: Sequence[LayerInfo]) -> set[str]:
        """Names of those that were there, and whole. Recovery will come upon a damaged one too, and see to it."""
        there = [layer for layer, (_, there) in zip(layers, self.remote.download_all([one.path for one in layers], self.disk)) if there]
        whole = {layer.path for layer in there if self.verify(layer)}
        self._delete({layer.path for layer in there} - whole)
        self.disk.sync_folders(whole)
        self.fetched |= whole
        return whole

    def _is_shared(self) -> bool:
        """Whether the run that leads has this very home: then all that there is lies here."""
        here = newest_generation(self.disk.sizes(RUNS))
        return here > 0 and here == newest_generation(self.remote.sizes(RUNS))

    def _delete(self, names: set[str]) -> None:
        with self._lock:
            for name in names if not self._stopped else ():
                self.disk.delete(name)
        self.fetched -= names

    def stop(self) -> None:
        """From here on nothing is deleted. A file that is on its way may still come."""
        with self._lock:
            self._stopped = True


def _made_of(whole: LayerInfo, image: Image) -> Iterable[LayerInfo]:
    written = image.traces.get(whole.trace, {}).get(whole.range, [])
    return (leaf for leaf in leaf_layers(written) if within(leaf, whole))
