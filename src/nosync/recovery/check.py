"""What the home and the remote hold, compared with what the journal says. For `nosync fsck`.

Promise: nothing is written to either, no Spark is needed, and a run that is going on is not disturbed. What such a run writes while the
check looks may show up as files that no record names yet.
"""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nosync.journal.chain import Chain, believed, read_chain, read_rollup
from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.names import (
    INPUT,
    LAYERS,
    OPENINGS,
    RECORDS,
    ROLLUPS,
    RUNS,
    SEGMENTS,
    numbers_in,
    openings_name,
    own,
    segment_name,
    source_folder,
)
from nosync.journal.past import TieredReader, read_openings, read_segment, whole_image
from nosync.model.errors import Corrupt, Invalid
from nosync.model.identifiers import RecordNumber
from nosync.model.layers import LayerInfo
from nosync.model.store import Remote, Store, fingerprint
from nosync.recovery.survey import Survey, Verify, doubtful
from nosync.state.layer import open_layer, verify
from nosync.store.disk import LocalDisk
from nosync.tiers.host import synced_number


@dataclass(frozen=True, slots=True)
class Records:
    """The journal on one tier: whole up to record `number`, rolled up to record `base`; files `behind` the end count for nothing."""

    number: RecordNumber
    base: RecordNumber
    behind: tuple[str, ...]
    generations: int
    rollups: int
    segments: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Holding:
    """Layers and input on one tier. `whole` are readable names; `orphans` are layers that no record names."""

    whole: frozenset[str]
    layers: int
    bytes: int
    inputs: int
    missing: tuple[str, ...]
    damaged: tuple[str, ...]
    orphans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found. `image` is the flow with its whole history, or, where old records are gone (`forgotten` says which), as much
    as is known. `lacking` records are on the remote only.
    """

    image: Image
    forgotten: str
    lacking: int
    records: Mapping[str, Records]
    holdings: Mapping[str, Holding]

    @property
    def survey(self) -> Survey:
        remote = self.holdings.get("remote")
        return Survey(self.holdings["home"].whole, remote.whole if remote else frozenset())


def check(home: Path, remote: Remote | None, boot: str, quick: bool = False) -> Findings:
    """`quick` compares sizes; otherwise every block of every layer is read. `boot` as in `Started`: files that a restart of the host may
    have torn are always read.
    """
    disk = LocalDisk(home)
    stores: dict[str, Store] = {"home": disk} | ({"remote": remote} if remote is not None else {})
    listed = {name: own(store.sizes(RECORDS)) for name, store in stores.items()}  # before the chains: what comes in meanwhile is no junk
    chains = {name: read_chain(store) for name, store in stores.items()}
    chain = believed(chains["home"], chains["remote"]) if remote is not None else chains["home"]
    if not chain.number:
        raise Invalid(f'"{home}" is not the home of a flow', hint="Give the folder that was passed as home=, or --remote if it is lost.")
    image, forgotten = _whole_image(chain, TieredReader(*stores.values()))
    doubted = doubtful(chains["home"], synced_number(disk, chains["home"]), boot)
    records = {name: _records(stores[name], chains[name], listed[name]) for name in stores}
    holdings = {"home": _in_home(image, disk, quick, doubted)}
    if remote is not None:
        holdings["remote"] = _on_remote(image, remote, quick)
    return Findings(image, forgotten, max(0, chain.number - chains["home"].number), records, holdings)


def _whole_image(chain: Chain, reader: TieredReader) -> tuple[Image, str]:
    image = chain.image()
    try:
        return whole_image(reader, image, chain.base, chain.records), ""
    except Corrupt as error:
        return image, error.message


def _records(store: Store, chain: Chain, listed: Iterable[str]) -> Records:
    reader = TieredReader(store)
    rollups = {name: read_rollup(store.read(name) or b"", name) is not None for name in own(store.sizes(ROLLUPS))}
    segments = {name: bool(read_segment(reader, name)) for name in own(store.sizes(SEGMENTS))}
    given_up = {numbers_in(name) for name in own(store.sizes(OPENINGS))} - set(map(numbers_in, segments))
    left = {openings_name(segment_name(*span)): read_openings(reader, *span) is not None for span in given_up}
    return Records(
        number=chain.number,
        base=chain.base,
        behind=tuple(sorted(name for name in listed if numbers_in(name)[0] > chain.number)),
        generations=len(own(store.sizes(RUNS))),
        rollups=sum(rollups.values()),
        segments=sum(segments.values()),
        damaged=tuple(sorted(name for name, whole in (rollups | segments | left).items() if not whole)),
    )


def _in_home(image: Image, disk: LocalDisk, quick: bool, doubted: frozenset[str]) -> Holding:
    sizes, inputs = disk.sizes(LAYERS), disk.sizes(INPUT)

    def whole(layer: LayerInfo) -> bool:
        close = not quick or layer.path in doubted
        return sizes[layer.path] == layer.bytes and (not close or is_whole(disk.root, layer))

    return _holding(image, sizes, inputs, whole, lambda name, mark: fingerprint(disk.read(name) or b"") == mark)


def _on_remote(image: Image, remote: Remote, quick: bool) -> Holding:
    """Objects are compressed: their sizes say nothing. They are fetched into a passing folder, one at a time."""
    sizes, inputs = remote.sizes(LAYERS), remote.sizes(INPUT)
    with tempfile.TemporaryDirectory(prefix="nosync-fsck-") as folder:
        passing = LocalDisk(Path(folder))

        def whole(layer: LayerInfo) -> bool:
            if quick:
                return True
            try:
                return remote.download(layer.path, passing) and is_whole(passing.root, layer)
            except Corrupt:
                return False
            finally:
                passing.delete(layer.path)

        return _holding(image, sizes, inputs, whole, lambda name, mark: quick or fingerprint(remote.read(name) or b"") == mark)


def is_whole(home: Path, layer: LayerInfo) -> bool:
    """Whether every block of a layer is what it was."""
    try:
        verify(open_layer(home, layer))
    except Corrupt:
        return False
    return True


def _holding(
    image: Image, sizes: Mapping[str, int], inputs: Mapping[str, int], whole: Verify, whole_input: Callable[[str, str], bool]
) -> Holding:
    layers = image.layers()
    good = {layer.path for layer in layers if layer.path in sizes and whole(layer)}
    needed = dict(_inputs(image))
    good_inputs = {name for name, mark in needed.items() if name in inputs and whole_input(name, mark)}
    bad = [name for name in (*(layer.path for layer in layers), *needed) if name not in good and name not in good_inputs]
    return Holding(
        whole=frozenset(good | good_inputs),
        layers=len(good),
        bytes=sum(layer.bytes for layer in layers if layer.path in good),
        inputs=len(good_inputs),
        missing=tuple(name for name in bad if name not in sizes and name not in inputs),
        damaged=tuple(name for name in bad if name in sizes or name in inputs),
        orphans=tuple(sorted(sizes.keys() - {layer.path for layer in layers})),
    )


def _inputs(image: Image) -> Iterable[tuple[str, str]]:
    """Files of the input logs that were not trimmed, with their fingerprints."""
    for entry in image.opened.values():
        for name, mark in entry.files.items():
            if not _trimmed(image, entry, name):
                yield name, mark


def _trimmed(image: Image, entry: Opened, name: str) -> bool:
    return any(name.startswith(source_folder(source) + "/") and image.trimmed.get(source, 0) >= entry.epoch for source in entry.slices)
