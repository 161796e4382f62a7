"""Runs a flow under the hood, epoch by epoch, with knobs the public face does not have."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nosync as ns
from nosync.journal.chain import read_chain
from nosync.journal.entries import GivenUp
from nosync.journal.image import Image
from nosync.journal.past import TieredReader, stretches
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.spark.ways import Ways
from nosync.store.disk import LocalDisk

NEVER_WIDE, ALWAYS_WIDE = 1 << 60, 0


def stepping_of(flow: ns.Flow, home: Path, shards: int | None = 2, wide_bytes: int = NEVER_WIDE, way: str = "") -> Stepping:
    stepping = begin(flow.program(), home, shards, wide_bytes=wide_bytes).recover()
    if way:
        stepping.engine.ways = Ways(way)
    return stepping


def run_all(flow: ns.Flow, home: Path, feeds: Iterable[Callable[[], Any]] = (), merged: bool = False, **knobs: Any) -> list[dict[str, Any]]:
    """All epochs there are, one after each feed; with `merged`, all merging done after each."""
    stepping = stepping_of(flow, home, **knobs)
    done = []
    try:
        for feed in feeds or [lambda: None]:
            feed()
            while (progress := stepping.step()) is not None:
                done.append(progress)
                if merged:
                    stepping.merger.merge_all(stepping.image, lambda layer: stepping.journal.append(_merged(layer)))
    finally:
        stepping.close()
    return done


def _merged(layer: Any) -> Any:
    from nosync.journal.entries import Merged

    return Merged(layer)


def checksums(home: Path) -> dict[tuple[str, int, int], str]:
    """What was written by epochs (merges left out), by trace, range and epoch; also what was given up since."""
    disk = LocalDisk(home)
    chain, image = read_chain(disk), Image()
    past = [(part.last, part.entries) for part in stretches(TieredReader(disk, None), chain.base)]
    for number, entries in (*past, *((record.number, record.entries) for record in chain.records)):
        for entry in entries:
            if not isinstance(entry, GivenUp):
                image.apply(number, entry)
    layers = [layer for layer in image.layers() if layer.upper == layer.lower + 1]
    return {(layer.trace, layer.range, layer.lower): layer.checksum for layer in layers}


def readable(home: Path) -> dict[int, dict[str, list[str]]]:
    """`contents` as of each epoch that is kept; refuses to find none."""
    opened = ns.open(home)
    found = {epoch: contents(home, epoch) for epoch in range(1, opened.epoch + 1) if epoch in opened.image.kept}
    assert found
    return found


def contents(home: Path, at: int | None = None) -> dict[str, list[str]]:
    """Every view's rows to the letter, sorted."""
    opened = ns.open(home)
    return {name: sorted(map(repr, opened.view(name, at=at).to_pylist())) for name in opened.views}
