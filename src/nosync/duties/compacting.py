"""Gives up layers that nobody will ask for again: what they hold is in others (see `state.folding`), on every tier.

A layer is given up once each tier can do without: a tier that lacks what stands for it, or has not synced that yet, holds it. That is
recorded first, and on every tier, before a file is deleted; and no file is deleted that somebody may be reading (`leases`). A run that
ends before it has deleted all leaves that to the sweeper of the next one: no record names these files any more.

A home that came back from a remote lacks what was not needed for that: it is fetched here, so that it can be folded with the rest. What is
nowhere any more, since it had travelled as one layer with others, is forgotten: that one is folded instead.
"""

from collections import deque
from collections.abc import Callable, Container, Mapping
from itertools import islice
from typing import Any

from nosync.journal.entries import GivenUp, Merged
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.names import LAYERS
from nosync.journal.recent import layers_of
from nosync.model.hash_range import HashRange, joined
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, TraceName
from nosync.model.layers import LayerInfo, TraceRange
from nosync.model.retention import FIRST
from nosync.model.store import Disk, Remote
from nosync.state.cover import pieces
from nosync.state.folding import chain_of, forgettable, needed
from nosync.tiers.host import HostTier
from nosync.tiers.layer_shipper import LayerShipper

AT_ONCE = 32  # paths in a record, unless nothing else is to do
EPOCHS_BETWEEN = 8  # while the stream is busy: looking costs time that epochs need
ERASED_AT_ONCE = 64


class Compactor:
    """`floor` says up to which epoch nothing will be taken back, nor asked for by a sink; `held` which is the newest record behind which
    nothing may be deleted, since somebody reads what it names; `is_coming`, whether a layer is on its way from where it was written.
    """

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        remote: Remote | None,
        host: HostTier | None,
        shipper: LayerShipper | None,
        floor: Callable[[Epoch], Epoch],
        held: Callable[[], RecordNumber | None],
        verify: Callable[[LayerInfo], bool],
        is_coming: Callable[[LayerInfo], bool] = lambda layer: False,
    ) -> None:
        self.journal, self.disk, self.remote, self.host, self.shipper = journal, disk, remote, host, shipper
        self.floor, self.held, self.verify, self.is_coming = floor, held, verify, is_coming
        self.due: deque[tuple[RecordNumber, str, bool]] = deque()
        self.looked: object = None
        self.looked_epoch = NO_EPOCH
        self.missing: dict[str, LayerInfo] | None = None
        self.erased = 0
        self.answered: dict[TraceRange, tuple[Any, set[str]]] = {}

    def step(self, everywhere: RecordNumber) -> bool:
        """One piece of the work; says whether there was any. Every tier has the records up to `everywhere`."""
        return self._erase(everywhere) or self._fetch() or self._give_up()

    def _erase(self, everywhere: RecordNumber) -> bool:
        if not self.due or self.due[0][0] > everywhere:
            return False
        held = self.held()
        last = everywhere if held is None else min(everywhere, held)
        due = [(name, away) for number, name, away in islice(self.due, ERASED_AT_ONCE) if number <= last]
        if due:
            self.journal.look()
        for name, away in due:
            self.disk.delete(name)
            if self.remote is not None and away:
                self.remote.delete(name)
            self.due.popleft()
            self.erased += 1
        return bool(due)

    def _fetch(self) -> bool:
        """One layer that only the remote has. What is damaged there is of use to nobody."""
        if self.missing is None:
            image = self.journal.snapshot()[0]  # before it is looked what is there: what comes meanwhile is not missing
            coming = {layer.path for layer in image.layers() if self.is_coming(layer)}
            there = self.disk.sizes(LAYERS).keys() | coming
            self.missing = {layer.path: layer for layer in image.layers() if layer.path not in there}
        uploaded = self.shipper.uploaded if self.shipper is not None else set[str]()
        name = next((name for name in sorted(self.missing) if name in uploaded), None)
        if name is None or self.remote is None or self.shipper is None:
            return False
        if not self.remote.download(name, self.disk):
            self.shipper.lose(name)  # it is nowhere: what it would have stood for stays
            return True
        if not self.verify(self.missing[name]):
            self.disk.delete(name)  # first: nobody verifies again what is here
            self.journal.look()  # what a newer run has put there instead is not ours to delete
            self.remote.delete(name)
            self.shipper.lose(name)
            return True
        self.disk.sync_files([name])
        self.disk.sync_folders([name])
        del self.missing[name]
        return True

    def _give_up(self) -> bool:
        image = self.journal.snapshot()[0]
        uploaded = self.shipper.uploaded if self.shipper is not None else set[str]()
        state = image.number, len(uploaded), (self.host.number, len(self.host.merged)) if self.host is not None else None
        busy = image.unfinished() is not None
        if state == self.looked or (busy and image.epoch < self.looked_epoch + EPOCHS_BETWEEN):
            return False
        self.looked_epoch = image.epoch
        gone, parts = self._without_use(image)
        if len(gone) + len(parts) < AT_ONCE and busy:
            return False  # soon there are more
        self.looked = state
        if gone or parts:
            there = [name for name in gone if name in uploaded]
            number = self.journal.append(GivenUp(tuple(gone), {path: list(map(str, joined(held))) for path, held in parts.items()}))
            self.due.extend((number, name, name in there) for name in gone)
            self.missing = {name: layer for name, layer in (self.missing or {}).items() if name not in gone}
        return bool(gone or parts)

    def _without_use(self, image: Image) -> tuple[list[str], dict[str, list[HashRange]]]:
        """Layers that no tier needs; and of those that are still needed, the hashes for which they are not: after a rescaling a layer may
        be all that there is in one piece, and beneath what was merged in another. There it would pass for what was changed in its epochs,
        and for all of it. Nothing that happens meanwhile makes one of them needed again.
        """
        last, unsynced = self.floor(image.epoch), self._unsynced()
        sinks = {TraceName(sink["trace"]) for sink in (image.declared.sinks.values() if image.declared else ()) if "trace" in sink}
        nowhere = (self.missing or {}).keys() - (self.shipper.uploaded if self.shipper is not None else set[str]())
        gone: dict[str, list[HashRange]] = {}
        wanted: dict[str, LayerInfo] = {}
        needed: set[str] = set()
        for trace, written in image.traces.items():
            begun = Epoch(image.begun[trace].epoch if trace in image.begun else FIRST)
            for held, layers in pieces(written).items():
                if trace in sinks:
                    stay = {layer.path for layer in layers if layer.upper > last + 1}
                else:
                    newest = image.newest.get(trace, {}).items()
                    stay = self._needed((trace, held), layers, image, last, begun, unsynced)
                    stay = stay - forgettable(layers, image.kept, last, begun, nowhere) if nowhere else stay
                    stay = stay | {layer.path for range, found in newest if range.overlaps(held) for layer in found}
                    wanted |= self._wanted(layers, image, last, begun)
                if any(layer.path in unsynced and layer.path not in stay for layer in layers):
                    stay = {layer.path for layer in layers}  # all at once, or none: what is left must not pass for all that there was
                needed |= stay
                for layer in layers:
                    if layer.path not in stay:
                        gone.setdefault(layer.path, []).append(held)
        if self.shipper is not None:
            self.shipper.wanted = {path: layer for path, layer in wanted.items() if path not in gone or path in needed}
        whole = [path for path in gone if path not in needed]
        return whole, {path: held for path, held in gone.items() if path in needed}

    def _needed(
        self, part: TraceRange, layers: list[LayerInfo], image: Image, last: Epoch, first: Epoch, unsynced: Container[str]
    ) -> set[str]:
        """On some tier, or once all that is named is on every tier. Mostly nothing has changed since it was asked before."""
        missing = self.missing or {}
        tiers = [None, [layer for layer in layers if layer.path not in unsynced and layer.path not in missing]]
        if self.shipper is not None:
            there = [layer for layer in layers if layer.path in self.shipper.uploaded]
            tiers += [there] if there not in tiers else []
        asked = layers, tiers, image.kept, last, first
        known = self.answered.get(part)
        if known is None or known[0] != asked:
            self.answered[part] = known = asked, set().union(*(needed(layers, image.kept, last, first, there) for there in tiers))
        return known[1]

    def _wanted(self, layers: list[LayerInfo], image: Image, last: Epoch, first: Epoch) -> Mapping[str, LayerInfo]:
        """What the remote should have of the past in the place of leaf layers."""
        if self.shipper is None:
            return {}
        chain = chain_of(layers, image.kept, last, first)
        found = (*([chain.base] if chain.base else []), *chain.versioned, *chain.steps)
        return {layer.path: layer for layer in found if layer.path not in self.shipper.uploaded and layer.path not in (self.missing or {})}

    def _unsynced(self) -> set[str]:
        """Layers that a restart of the host may tear."""
        if self.host is None or not self.host.layers:
            return set()
        records = self.journal.after(self.host.number)
        merged = [entry.layer.path for record in records for entry in record.entries if isinstance(entry, Merged)]
        return {*self.host.merged, *merged, *(layer.path for record in records for layer in layers_of(record))}
