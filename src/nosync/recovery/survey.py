"""What is readable where. Reads names and sizes; checksums only where a restart of the host may have torn a file."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nosync.journal.chain import Chain
from nosync.journal.entries import Computed, Merged, Opened, Restored, Started, TakenOver
from nosync.journal.image import Image
from nosync.journal.names import INPUT, LAYERS
from nosync.model.identifiers import RecordNumber
from nosync.model.layers import LayerInfo
from nosync.model.store import Disk, Remote, fingerprint
from nosync.tiers.inventory import layers_there

Verify = Callable[[LayerInfo], bool]


@dataclass(frozen=True, slots=True)
class Survey:
    """Names of layers and input that can be read from the home, and from the remote. `doubted` ones were not safe when the host failed;
    `torn` layers lie in the home and cannot be read.
    """

    home: frozenset[str]
    remote: frozenset[str]
    doubted: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()

    def readable(self, name: str) -> bool:
        return name in self.home or name in self.remote


def doubtful(chain: Chain, synced: RecordNumber, boot: str) -> frozenset[str]:
    """Files named in records behind the last that is known to be synced, and written before the host's last restart, which may have torn
    them; and those that tasks have written elsewhere, which may have gone with their hosts before they came home.
    """
    found: set[str] = set()
    written = chain.rollup.image.started.boot if chain.rollup and chain.rollup.image.started else boot
    for record in chain.records:
        for entry in record.entries:
            if isinstance(entry, Started):
                written = entry.boot
            if record.number <= synced:
                continue
            match entry:
                case Computed() | Restored() | TakenOver():
                    found.update(layer.path for layer in entry.layers if written != boot or layer.place)
                case Merged() if written != boot:
                    found.add(entry.layer.path)
                case Opened() if written != boot:
                    found.update(entry.files)
    return frozenset(found)


def intact(image: Image, disk: Disk, doubted: frozenset[str], needed: Iterable[str]) -> bool:
    """Whether the newest state can be read from the home as it is: the usual case, and the quick one. Files in doubt are looked at
    closely instead.
    """
    if doubted and any(layer.path in doubted for layer in image.layers()):  # of old epochs too: they shall be readable, or known not to be
        return False
    if any(disk.size(layer.path) != layer.bytes for layer in image.newest_layers()):
        return False
    return all(disk.exists(name) and name not in doubted for name in needed)


def survey(image: Image, disk: Disk, remote: Remote | None, doubted: frozenset[str], verify: Verify) -> Survey:
    """Everything the image names, on both tiers."""
    sizes = disk.sizes(LAYERS)
    home = {layer.path for layer in image.layers() if sizes.get(layer.path) == layer.bytes and (layer.path not in doubted or verify(layer))}
    torn = {layer.path for layer in image.layers() if layer.path in sizes} - home
    there: set[str] = set()
    if remote is not None:
        there = {*layers_there(remote, image), *remote.sizes(INPUT)}
    inputs = disk.sizes(INPUT)
    for entry in image.opened.values():
        for name, mark in entry.files.items():
            if name in inputs and fingerprint(disk.read(name) or b"") == mark:
                home.add(name)
    return Survey(frozenset(home), frozenset(there), doubted, frozenset(torn))
