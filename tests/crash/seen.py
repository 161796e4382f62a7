"""The flow as its stores show it to somebody who only reads: a home and the remote together, or the remote alone.

A home that took over has the newest state; older layers lie on the remote until somebody asks for them.
"""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from nosync.history.reader import rows
from nosync.history.record import ViewRecord
from nosync.history.view_covers import Past, covers_at
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Started
from nosync.journal.past import TieredReader, openings
from nosync.model.errors import NotInHistory
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.store import Remote
from nosync.state.layer import Layer, verify
from nosync.state.versions import open_as_of
from nosync.store.disk import LocalDisk
from tests.crash.answers import VIEWS, Row, answers, counted


class Seen:
    """One reading of it. Layers that the home lacks are had from the remote into `cache`."""

    def __init__(self, home: Path | None, remote: Remote, cache: Path) -> None:
        self.disk, self.remote, self.cache = LocalDisk(home) if home else None, remote, LocalDisk(cache)
        self.chain = read_chain(self.disk or remote)
        self.image = self.chain.image()
        self.past = Past(self.disk or remote, remote, self.chain.base)

    @property
    def epoch(self) -> int:
        return self.image.epoch

    @property
    def recovered(self) -> bool:
        """Whether the last run has put its state together: until then layers may be named that are to be had anew."""
        entries = [entry for record in self.chain.records for entry in record.entries if isinstance(entry, Started | Computed)]
        return not entries or isinstance(entries[-1], Computed)

    def taken(self) -> dict[int, list[str]]:
        """By epoch, the files that it has taken."""
        known = openings(TieredReader(self.disk, self.remote), self.chain.base, self.chain.records)
        return {entry.epoch: [file[0] for file in entry.slices["orders"]["files"]] for entry in known}

    def check(self, epochs: list[int], files: dict[int, list[str]], reported: frozenset[int]) -> int:
        """Every view at each of these epochs that is kept is what it must be. Kept are the newest, once the state is together, and all that
        were ever `reported` to survive the loss of the site. Gives the number of epochs that are kept.
        """
        kept = 0
        for epoch in epochs:
            expected = answers(name for number in range(1, epoch + 1) for name in files[number])
            try:
                found = {view: self.rows(view, epoch) for view in VIEWS}
            except NotInHistory as error:
                assert not self.recovered or epoch < self.epoch, f"epoch {epoch} cannot be read: {error}"
                assert epoch not in reported, f"epoch {epoch} was reported as safe and cannot be read any more: {error}"
                continue
            for view in VIEWS:
                missing, extra = expected[view] - found[view], found[view] - expected[view]
                assert not missing and not extra, (
                    f'view "{view}" at epoch {epoch} of {self.epoch} lacks {list(missing)[:3]} and has {list(extra)[:3]} too many'
                )
            kept += 1
        return kept

    def rows(self, view: str, epoch: int) -> Counter[Row]:
        assert self.image.declared is not None
        record = ViewRecord.from_json(self.image.declared.views[view])
        covers = covers_at(self.image, record, view, Epoch(epoch), self.past)
        batches = [batch for held in sorted(covers) for batch in rows(record, [self._layer(layer) for layer in covers[held]])]
        return counted(pa.Table.from_batches(batches, record.schema).to_pylist())

    def _layer(self, layer: LayerInfo) -> Layer:
        if self.disk is not None and self.disk.exists(layer.path):
            return verify(open_as_of(self.disk.root, layer))
        if not self.cache.exists(layer.path) and not self.remote.download(layer.path, self.cache):
            raise NotInHistory(f"{layer.path} is neither in the home nor on the remote")  # several epochs went there as one layer
        return verify(open_as_of(self.cache.root, layer))
