"""Copies of layers on the remote, the tier that survives the loss of the site, so that a recovery need not compute what they hold.

Neither this nor `RecordShipper` waits for the other: what is readable there is found by looking (see `recovery.survey`).

Shipping adapts to load. A stream that rests between its epochs leaves time for each one's layers. While epochs follow each other closely,
layers wait, `patience` seconds at most: then the one layer into which the merger has collapsed them goes in their place, with fewer bytes
and fewer objects. Each round has a `goal`, the newest epoch when it begins, and nothing goes that crosses it: so its state can be read once
all before it is there. Traces are merged at epochs of their own; without a goal there might be no epoch at which all can be read. Between
rounds go layers of the past that stand for many others (`wanted`): until they are there, nothing can be given up. When the stream rests,
merged layers are shipped that shorten what a recovery would have to fetch, until that fits `recover_within`.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from nosync.journal.entries import Computed, GivenUp, Restored, RolledBack, TakenOver
from nosync.journal.journal import Journal
from nosync.model.errors import Corrupt
from nosync.model.estimate import Meter
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, TraceName
from nosync.model.layers import LayerInfo, TraceRange
from nosync.model.policy import MOST_LAYERS, PATIENCE_SECONDS
from nosync.model.safety import Standing
from nosync.model.store import Disk, Remote, Uploader
from nosync.state.cover import cover, pieces
from nosync.state.leaves import within
from nosync.tiers.choosing import collapsing, cross, spans, stand_ins, uncovered
from nosync.tiers.inventory import layers_there
from nosync.tiers.record_shipper import RecordShipper

REQUESTS_A_LAYER = 2  # write, ask for the size
PATIENT_BYTES = 256 << 20
REST_SECONDS = 0.3  # without news of the stream, it rests
MUCH_LONGER = 4  # as many layers as a recovery may fetch at most: then they are shortened even while the stream is busy


class LayerShipper:
    """Brings layers to the remote. `waiting` holds, per trace and shard, the leaf layers that are not there yet, oldest first;
    `behind` are their bytes. `there` are those that a recovery would fetch, `wanted` ones that are to be there for the past (see
    `duties.compacting`).
    """

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        remote: Remote,
        most_layers: int = MOST_LAYERS,
        uploader: Uploader | None = None,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter or Meter()
        self.journal, self.disk, self.most_layers, self.uploader = journal, disk, most_layers, uploader or remote
        self.patience, self.clock = patience, clock
        self.came: dict[str, float] = {}
        self.is_coming: Callable[[LayerInfo], bool] = lambda layer: False  # on its way from where it was written
        self.heard = 0.0
        self.remote = remote
        self.uploaded = layers_there(remote, journal.snapshot()[0])
        journal.look_at(remote)
        self.number = journal.number
        self.waiting: dict[TraceRange, list[LayerInfo]] = {}
        self.there: dict[TraceRange, list[LayerInfo]] = {}
        self.wanted: Mapping[str, LayerInfo] = {}  # layers of the past that stand for many others
        self.spans: set[tuple[Epoch, Epoch]] = set()
        self._begin_again()
        self.looked = -1
        self.epoch = NO_EPOCH
        self.unconfirmed: deque[tuple[RecordNumber, Epoch]] = deque([(self.number, self._reached())])
        self.unlooked: tuple[RecordNumber, Epoch] | None = None
        self.objects, self.bytes, self.plain_bytes = 0, 0, 0
        self.damaged = False
        self.goal = NO_EPOCH
        self.past: Mapping[str, LayerInfo] = {}  # what was wanted when the round began goes before the next one

    def lose(self, name: str) -> None:
        """A layer that was there is there no more: what else stands for it is looked for anew."""
        self.uploaded.discard(name)
        self.damaged = True

    def to_fetch(self) -> tuple[int, int]:
        """How many layers a recovery would fetch, and the bytes that would travel for them."""
        there = list(self.there.values())
        shrink = self.bytes / self.plain_bytes if self.plain_bytes else 1.0
        return sum(map(len, there)), int(shrink * sum(layer.bytes for layers in there for layer in layers))

    def standing(self, records: RecordShipper) -> Standing:
        """Both shippers together. A layer counts once the record that names it is there too."""
        with self.journal.lock:  # asked by many threads
            shipped = self.journal.shipped
            while self.unconfirmed and self.unconfirmed[0][0] <= shipped:
                self.epoch = self.unconfirmed.popleft()[1]
            behind = self.behind + self.journal.recent.record_bytes_after(shipped)
        objects, sent = self.objects + records.objects, self.bytes + records.bytes
        return Standing("site", shipped, min(self.epoch, self.journal.computed_by(shipped)), behind, objects, sent)

    def _reached(self) -> Epoch:
        """The newest epoch whose state can be read there: all before it is there, and no layer spans it that has no finer ones beside
        it.
        """
        epoch = min([self.journal.computed_by(self.number), *(layers[0].lower - 1 for layers in self.waiting.values() if layers)])
        for lower, upper in sorted(self.spans, reverse=True):
            if lower <= epoch < upper - 1:
                epoch = lower - 1
        self.spans = {span for span in self.spans if span[1] > epoch + 1}  # it only goes on from here
        return epoch

    def step(self) -> bool:
        """Ships one layer; says whether there was one."""
        self._look()
        if self.damaged:
            self.damaged = False
            self._begin_again()
        if self._follow():
            self._confirm_at(self.number)
        layer = self._next()
        if layer is None and (not self.busy or len(self.uploaded) > MUCH_LONGER * self.most_layers):
            layer = self._shortening()
        if layer is None:
            layer = next((wanted for path, wanted in self.wanted.items() if path not in self.uploaded), None)
        return layer is not None and not self.is_coming(layer) and self._upload(layer)

    def _upload(self, layer: LayerInfo) -> bool:
        """Says whether it is there; not so where it was given up meanwhile."""
        named = self.journal.number
        begun = self.clock()
        try:
            travelled = self.uploader.upload(layer.path, self.disk)
        except Corrupt:
            if layer.path in {other.path for layers in self._traces().values() for other in layers}:
                raise
            self.wanted = {path: wanted for path, wanted in self.wanted.items() if path != layer.path}
            return False
        self.meter.transfer(REQUESTS_A_LAYER, travelled, self.clock() - begun)
        self.bytes += travelled
        self.plain_bytes += layer.bytes
        self.objects += 1
        self.uploaded.add(layer.path)
        part = (layer.trace, layer.range)
        self.there[part] = list(cover([*self.there.get(part, ()), layer], self.journal.image.epoch))
        inside = [other for other in self.waiting.setdefault(part, []) if within(other, layer)]
        if inside and not layer.versions:
            self.spans.add((inside[0].lower, layer.upper))
        gone = {other.path for other in inside}
        self.waiting[part] = [other for other in self.waiting.get(part, ()) if other.path not in gone]
        self.behind -= sum(other.bytes for other in inside)
        for path in gone:
            self.came.pop(path, None)
        if layer.upper > layer.lower + 1 and self._crosses(layer):
            self._begin_again()  # no cover has both: what the other stood for alone may have to come too
        self._wait_no_more()
        self._confirm_at(named)
        return True

    def _confirm_at(self, number: RecordNumber) -> None:
        """What can be read counts once records up to this one are there."""
        reached = self._reached()
        self.unlooked = None if self.unconfirmed and self.unconfirmed[-1][1] == reached else (number, reached)
        self._look()

    def _look(self) -> None:
        """A run that took over before a layer arrived has not found it there: it goes on with others in its place."""
        if self.unlooked is not None:
            self.journal.look_at(self.remote)
            self.unconfirmed.append(self.unlooked)
            self.unlooked = None

    def _follow(self) -> bool:
        """Takes notice of new records; says whether there were any."""
        records, now = self.journal.after(self.number), self.clock()
        for record in records:
            for entry in record.entries:
                match entry:
                    case Computed():
                        self.heard = now
                        for layer in entry.layers:
                            self.waiting.setdefault((layer.trace, layer.range), []).append(layer)
                            self.came[layer.path] = now
                            self.behind += layer.bytes
                    case GivenUp():
                        self._forget(frozenset(entry.paths))
                    case Restored() | TakenOver() | RolledBack():
                        self.goal = NO_EPOCH
                        self._begin_again()
            self.number = record.number
        return bool(records)

    def _forget(self, gone: frozenset[str]) -> None:
        """Layers that others stand for, there too."""
        self.uploaded -= gone
        known = {part: layers for part, layers in self._traces().items() if any(one.path in gone for one in self.there.get(part, ()))}
        self.there |= {part: self._uploaded_cover(layers) for part, layers in known.items()}

    def _uploaded_cover(self, layers: list[LayerInfo]) -> list[LayerInfo]:
        return list(cover([one for one in layers if one.path in self.uploaded], self.journal.image.epoch))

    def _begin_again(self) -> None:
        self.came.clear()
        traces = self._traces()
        with self.journal.lock:
            found = [layers for written in self.journal.image.traces.values() for layers in pieces(written).values()]
        self.waiting = {part: [] for part in traces} | _by_range(leaf for layers in found for leaf in uncovered(layers, self.uploaded))
        self.lost = self._lost()
        self.there = {part: self._uploaded_cover(layers) for part, layers in traces.items()}
        self.behind = sum(layer.bytes for layers in self.waiting.values() for layer in layers)
        self.spans = {span for layers in found for span in spans(layers, self.uploaded)}
        with self.journal.lock:  # what came with a changed program has no state of earlier epochs, here or there
            self.spans |= {(Epoch(1), begun.epoch + 1) for begun in self.journal.image.begun.values()}
        self._wait_no_more()

    def _traces(self) -> dict[TraceRange, list[LayerInfo]]:
        with self.journal.lock:
            traces = self.journal.image.traces
            return {(trace, held): list(layers) for trace, ranges in traces.items() for held, layers in ranges.items()}

    def _lost(self) -> frozenset[str]:
        """Layers of earlier shards that a recovery has left on record although nobody has them any more: they wait for what stands for
        them.
        """
        held: dict[TraceName, list[HashRange]] = {}
        for trace, range in self.waiting:
            held.setdefault(trace, []).append(range)
        old = [
            part for part in self.waiting
            if any(other != part[1] and other.overlaps(part[1]) for other in held[part[0]])
        ]  # fmt: skip
        waiting = (layer for part in old for layer in self.waiting[part])
        return frozenset(layer.path for layer in waiting if not (self.disk.exists(layer.path) or self.is_coming(layer)))

    def _next(self) -> LayerInfo | None:
        """For the oldest waiting layer, if it has waited long enough: the one that collapses it and its followers."""
        for layers in self.waiting.values() if self.lost else ():
            instead = [other for layer in layers for other in self._instead(layer) if other.path not in self.uploaded]
            if instead:
                return instead[0]
        behind = {part: [layer for layer in layers if layer.path not in self.lost] for part, layers in self.waiting.items()}
        part = min((part for part, layers in behind.items() if layers), key=lambda part: behind[part][0].lower, default=None)
        if part is None:
            return None
        waiting = behind[part]
        if self._may_wait(waiting[0]):
            return None
        if waiting[0].lower > self.goal:  # all up to there has come
            past = next((one for path, one in self.past.items() if path in self.wanted and path not in self.uploaded), None)
            if past is not None and not self.is_coming(past):
                return past
            self.goal, self.past = self.journal.computed_by(self.number), dict(self.wanted)
        known, others = self._known(*part)
        before, beyond = ([layer for layer in known if (layer.upper > self.goal + 1) == later] for later in (False, True))
        return self._at_hand(collapsing(waiting, before, self.uploaded, [*others, *beyond]))

    def _instead(self, layer: LayerInfo) -> list[LayerInfo]:
        """What stands for a lost layer in today's shards."""
        if layer.path not in self.lost:
            return []
        with self.journal.lock:
            return stand_ins(layer, self.journal.image.newest.get(layer.trace, {}))

    def _wait_no_more(self) -> None:
        """What stands for lost layers is there: only the epochs within cannot be read."""
        for part, layers in self.waiting.items() if self.lost else ():
            for layer in layers:
                instead = self._instead(layer)
                if instead and all(other.path in self.uploaded for other in instead):
                    self.lost -= {layer.path}
                    self.behind -= layer.bytes
                    self.waiting[part] = [other for other in self.waiting[part] if other is not layer]
                    self.spans.add((min(other.lower for other in instead), max(other.upper for other in instead)))

    def _at_hand(self, layer: LayerInfo) -> LayerInfo:
        """The layer; where it was lost, the one that stands for it, or what that takes to be read: layers that cross it may be there."""
        if self.disk.exists(layer.path):
            return layer
        with self.journal.lock:
            newest = self.journal.image.newest.get(layer.trace, {})
            found = [larger for layers in newest.values() for larger in layers if layer.range.within(larger.range)]
        found = [larger for larger in sorted(found, key=lambda larger: larger.lower) if larger.path not in self.uploaded]
        return next((larger for larger in found if within(layer, larger)), found[0] if found else layer)

    def _crosses(self, layer: LayerInfo) -> bool:
        known, others = self._known(layer.trace, layer.range)
        return any(cross(layer, other) for other in (*known, *others) if other.path in self.uploaded)

    def _known(self, trace: TraceName, held: HashRange) -> tuple[list[LayerInfo], list[LayerInfo]]:
        """The layers of a range of a trace, and those that shards of other ranges have written there."""
        with self.journal.lock:
            written = self.journal.image.traces[trace]
            others = [layer for range, layers in written.items() if range != held and range.overlaps(held) for layer in layers]
            return list(written[held]), others

    @property
    def busy(self) -> bool:
        """Whether epochs follow each other closely."""
        return self.clock() - self.heard < REST_SECONDS

    def _may_wait(self, layer: LayerInfo) -> bool:
        waited = self.clock() - self.came.get(layer.path, -self.patience)
        return self.busy and waited < self.patience and self.behind < PATIENT_BYTES

    def _shortening(self) -> LayerInfo | None:
        """A merged layer in the place of the most layers there, while a recovery would have to fetch more than allowed."""
        if self.looked == self.number + self.objects:  # nothing is new since there was nothing to do
            return None
        best: tuple[int, LayerInfo] | None = None
        total = 0
        traces = self._traces()
        self.uploaded.intersection_update(layer.path for layers in traces.values() for layer in layers)
        for part, layers in traces.items():
            there = self.there.get(part, [])
            total += len(there)
            for layer in layers:
                inside = sum(within(other, layer) for other in there)
                crosses = self.busy and layer.upper > self.goal + 1
                if layer.path not in self.uploaded and not crosses and inside > 1 and (best is None or inside > best[0]):
                    best = (inside, layer)
        if best is None or total <= self.most_layers:
            self.looked = self.number + self.objects
            return None
        return best[1]


def _by_range(layers: Iterable[LayerInfo]) -> dict[TraceRange, list[LayerInfo]]:
    """Each once, by the range that it was written with, oldest first."""
    found: dict[TraceRange, list[LayerInfo]] = {}
    for layer in sorted({layer.path: layer for layer in layers}.values(), key=lambda layer: layer.lower):
        found.setdefault((layer.trace, layer.range), []).append(layer)
    return found
